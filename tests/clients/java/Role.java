import com.fasterxml.jackson.databind.JsonNode;

/** What one run of the client is; roles that a client version has no classes for are left out of its build. */
interface Role {
    void run(JsonNode config) throws Exception;
}
