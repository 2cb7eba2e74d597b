package convoke.conformance;

import java.util.Map;

import net.bytebuddy.asm.Advice;
import org.apache.kafka.common.requests.RequestContext;

/** What is done at the places where Kafka's tests meet their clusters. The bodies are copied into Kafka's own methods. */
final class JoinPoints {
    private JoinPoints() {
    }

    /** The brokers of a kit run. Some cases open sockets before they ask for addresses, so Convoke starts here. */
    static final class KitStarted {
        @Advice.OnMethodExit
        static void exit(@Advice.This Object kit) throws Exception {
            Fronts.start((String) kit.getClass().getMethod("bootstrapServers").invoke(kit));
        }
    }

    static final class KitAddresses {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) String servers) {
            servers = Fronts.readdressed(servers);
        }
    }

    /** The older harness has no moment at which the whole cluster runs, but for the first time that its addresses are asked for. */
    static final class HarnessAddresses {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) String servers) throws Exception {
            Fronts.start(servers);
            servers = Fronts.readdressed(servers);
        }
    }

    static final class ClusterEnds {
        @Advice.OnMethodEnter
        static void enter() throws Exception {
            Fronts.stop();
        }
    }

    /**
     * Raw sockets of the tests; the brokers and Kafka's clients use channels. Inlined into a class of the boot loader, which sees
     * nothing but the JDK.
     */
    static final class SocketConnects {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 1, readOnly = false) int port) {
            Object ports = System.getProperties().get("convoke.conformance.ports");
            Object ours = ports instanceof Map<?, ?> map ? map.get(port) : null;
            if (ours != null) {
                port = (Integer) ours;
            }
        }
    }

    static final class RequestArrives {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(0) Object request) throws Exception {
            Requests.arrived((RequestContext) request.getClass().getMethod("context").invoke(request));
        }
    }
}
