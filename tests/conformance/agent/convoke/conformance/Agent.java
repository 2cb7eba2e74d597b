package convoke.conformance;

import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.none;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import java.lang.instrument.Instrumentation;
import java.net.Socket;

import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.utility.JavaModule;

/** Puts Convoke in front of every cluster that Kafka's own tests start in this JVM, and gives their clients its addresses. */
public final class Agent {
    private Agent() {
    }

    public static void premain(String arguments, Instrumentation instrumentation) {
        AgentBuilder agent = builder().type(named("kafka.server.KafkaApis"))
            .transform(at(named("handle").and(takesArguments(2)), JoinPoints.RequestArrives.class));
        if (!Fronts.isControlRun()) {
            agent = agent
                .type(named("org.apache.kafka.common.test.KafkaClusterTestKit"))
                .transform(at(named("startup"), JoinPoints.KitStarted.class))
                .transform(at(named("bootstrapServers"), JoinPoints.KitAddresses.class))
                .transform(at(named("close"), JoinPoints.ClusterEnds.class))
                .type(named("kafka.utils.TestUtils$"))
                .transform(at(named("bootstrapServers").and(takesArguments(2)), JoinPoints.HarnessAddresses.class))
                .type(named("kafka.server.QuorumTestHarness"))
                .transform(at(named("tearDown"), JoinPoints.ClusterEnds.class))
                .type(named(Socket.class.getName()))
                .transform(at(isConstructor().and(takesArguments(String.class, int.class)), JoinPoints.SocketConnects.class));
        }
        agent.installOn(instrumentation);
    }

    private static AgentBuilder builder() {
        return new AgentBuilder.Default()
            .ignore(none())
            .disableClassFormatChanges()
            .with(AgentBuilder.RedefinitionStrategy.RETRANSFORMATION)
            .with(new Failures());
    }

    private static AgentBuilder.Transformer at(ElementMatcher<? super MethodDescription> method, Class<?> advice) {
        return (type, description, loader, module, domain) -> type.visit(Advice.to(advice).on(method));
    }

    /** A join point that is missed lets the tests past Convoke: that must be seen. */
    private static final class Failures extends AgentBuilder.Listener.Adapter {
        @Override
        public void onError(String type, ClassLoader loader, JavaModule module, boolean loaded, Throwable error) {
            Results.problem("cannot change " + type, error);
        }
    }
}
