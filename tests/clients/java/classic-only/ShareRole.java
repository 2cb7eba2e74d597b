import java.util.Properties;

import com.fasterxml.jackson.databind.JsonNode;

/** Stands in where the client version has no share groups. */
final class ShareRole {
    static void consume(JsonNode config, Properties properties) {
        throw new UnsupportedOperationException("this client has no share groups");
    }
}
