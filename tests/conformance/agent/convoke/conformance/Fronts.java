package convoke.conformance;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The Convoke in front of the cluster of the case that runs, and the ports that stand for the brokers'. */
public final class Fronts {
    private static final String PROGRAM = System.getProperty("convoke.program", "");
    /** Broker's port to ours; a system property, since the changed Socket can see no class of the agent. */
    private static final Map<Integer, Integer> PORTS = new ConcurrentHashMap<>();
    private static final List<Front> RUNNING = new ArrayList<>();

    static {
        System.getProperties().put("convoke.conformance.ports", PORTS);
        Runtime.getRuntime().addShutdownHook(new Thread(Fronts::stop));
    }

    private Fronts() {
    }

    /** Whether the tests run on plain Kafka. */
    static boolean isControlRun() {
        return PROGRAM.isEmpty();
    }

    /** Starts a Convoke in front of these brokers, unless one stands there, and waits until it serves each of them. */
    public static synchronized void start(String servers) throws Exception {
        List<Integer> brokers = ports(servers).toList();
        if (brokers.isEmpty() || PORTS.keySet().containsAll(brokers)) {
            return;
        }
        Front front = new Front(PROGRAM, servers, PORTS::put);
        RUNNING.add(front);
        front.awaitReady(brokers, PORTS.keySet());
    }

    /** The same brokers by the addresses that clients are to have; the brokers' own where no Convoke stands in front. */
    public static String readdressed(String servers) {
        return PORTS.keySet().containsAll(ports(servers).toList())
            ? ports(servers).map(port -> "localhost:" + PORTS.get(port)).collect(Collectors.joining(","))
            : servers;
    }

    public static synchronized void stop() {
        RUNNING.forEach(Front::stop);
        RUNNING.clear();
        PORTS.clear();
    }

    private static Stream<Integer> ports(String servers) {
        return Stream.of(servers.split(","))
            .filter(server -> !server.isEmpty())
            .map(server -> Integer.valueOf(server.substring(server.lastIndexOf(':') + 1)));
    }
}
