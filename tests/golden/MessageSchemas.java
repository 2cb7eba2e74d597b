// Makes tests/golden/message_schemas.txt by reflection over the schemas that Apache Kafka generated for every API.
//
//   java -cp "$KAFKA_LIBS/*" tests/golden/MessageSchemas.java > tests/golden/message_schemas.txt
//
// KAFKA_LIBS holds the jars of Apache Kafka 4.4.0 (kafka-clients). A message starts with a line "request|response KEY NAME
// MIN-MAX flexible SINCE|never"; its fields follow in wire order as "PATH TYPE VERSIONS". "[]" in a path steps into the
// elements of an array, "@N" names a tagged field, "?" after a type says that null is allowed. A field whose type or
// nullability changed has one line for each form; the fields of one version are the lines whose versions hold it, in order.

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

public class MessageSchemas {
    /** The versions of each line, in wire order. */
    private final List<String> lines = new ArrayList<>();
    private final Map<String, TreeSet<Integer>> versions = new LinkedHashMap<>();
    private int version;
    private int at;
    private boolean flexible;

    public static void main(String[] args) {
        for (ApiKeys key : ApiKeys.values()) {
            if (key.messageType.highestSupportedVersion(true) < key.messageType.lowestSupportedVersion()) {
                continue;
            }
            new MessageSchemas().print("request", key, key.messageType.requestSchemas());
            new MessageSchemas().print("response", key, key.messageType.responseSchemas());
        }
    }

    private void print(String kind, ApiKeys key, Schema[] schemas) {
        int min = key.messageType.lowestSupportedVersion();
        int max = key.messageType.highestSupportedVersion(true);
        String since = "never";
        for (version = max; version >= min; version--) {
            flexible = key.messageType.requestHeaderVersion((short) version) >= 2;
            if (flexible) {
                since = Integer.toString(version);
            }
            at = 0;
            struct("", schemas[version]);
        }
        System.out.printf("%s %d %s %d-%d flexible %s%n", kind, key.id, key.name, min, max, since);
        for (String line : lines) {
            TreeSet<Integer> in = versions.get(line);
            if (in.last() - in.first() + 1 != in.size()) {
                throw new IllegalStateException(key + " " + line + " has gaps: " + in);
            }
            System.out.printf("  %s %d-%d%n", line, in.first(), in.last());
        }
    }

    private void struct(String path, Schema schema) {
        boolean tagged = false;
        for (BoundField field : schema.fields()) {
            if (field.def.type instanceof TaggedFields) {
                tagged = true;
                for (Map.Entry<Integer, Field> entry : ((TaggedFields) field.def.type).fields().entrySet()) {
                    field(path + entry.getValue().name + "@" + entry.getKey(), entry.getValue().type);
                }
            } else {
                field(path + field.def.name, field.def.type);
            }
        }
        if (tagged != flexible) {
            throw new IllegalStateException(path + " v" + version + ": tagged fields and flexibility differ");
        }
    }

    private void field(String path, Type type) {
        String nullable = type.isNullable() ? "?" : "";
        if (type.isArray()) {
            Type element = type.arrayElementType().get();
            if (element instanceof Schema) {
                line(path + " structs" + nullable);
                struct(path + "[].", (Schema) element);
            } else {
                line(path + " array:" + name(element) + nullable);
            }
        } else if (type instanceof Schema) {
            line(path + " struct" + nullable);
            struct(path + ".", (Schema) type);
        } else {
            line(path + " " + name(type) + nullable);
        }
    }

    private String name(Type type) {
        String name = type.toString().toLowerCase();
        boolean compact = name.startsWith("compact_");
        name = name.replace("compact_", "").replace("nullable_", "");
        boolean measured = name.equals("string") || name.equals("bytes") || name.equals("records");
        if (measured && compact != flexible) {
            throw new IllegalStateException(type + " v" + version + ": compactness and flexibility differ");
        }
        return name;
    }

    private void line(String line) {
        int found = lines.indexOf(line);
        if (found < 0) {
            lines.add(at, line);
            found = at;
        } else if (found < at) {
            throw new IllegalStateException(line + " v" + version + " moved");
        }
        versions.computeIfAbsent(line, ignored -> new TreeSet<>()).add(version);
        at = found + 1;
    }
}
