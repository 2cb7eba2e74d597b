import java.util.*;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.admin.DescribeClassicGroupsOptions;

/** The calls that came with 4.0 and later. */
final class NewestAdminRole extends AdminRole {
    @Override
    protected Object call(String name, JsonNode asked) throws Exception {
        return switch (name) {
            case "listGroups" -> {
                List<String> groups = texts(asked.get("groups"));
                yield admin.listGroups().all().get().stream().filter(group -> groups.contains(group.groupId()))
                    .map(group -> List.of(group.groupId(), group.type().toString(), group.protocol(),
                        group.groupState().toString()))
                    .sorted(Comparator.comparing(Object::toString)).toList();
            }
            case "describeClassicGroups" -> {
                Map<String, Object> all = new TreeMap<>();
                var options = new DescribeClassicGroupsOptions().includeAuthorizedOperations(true);
                for (var group : admin.describeClassicGroups(texts(asked.get("groups")), options).all().get().values()) {
                    all.put(group.groupId(), List.of(group.protocol(), group.protocolData(), group.state().toString(),
                        group.coordinator().id(), sorted(group.authorizedOperations()), members(group.members())));
                }
                yield all;
            }
            case "quorumAddresses" -> admin.describeMetadataQuorum().quorumInfo().get().nodes().values().stream()
                .flatMap(node -> node.endpoints().stream()).map(Object::toString).sorted().toList();
            default -> super.call(name, asked);
        };
    }
}
