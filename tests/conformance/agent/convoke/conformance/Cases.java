package convoke.conformance;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;

/** Books every case that JUnit runs, with what reached the brokers meanwhile. */
public final class Cases implements TestExecutionListener {
    private static volatile String current = "before";

    private final Map<UniqueId, Long> started = new ConcurrentHashMap<>();

    /** The case that runs, or the one that ran last. */
    static String current() {
        return current;
    }

    @Override
    public void executionStarted(TestIdentifier test) {
        if (test.isTest()) {
            current = name(test);
            started.put(test.getUniqueIdObject(), System.nanoTime());
        }
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        Throwable error = result.getThrowable().orElse(null);
        if (test.isTest()) {
            long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - started.remove(test.getUniqueIdObject()));
            Results.ended(name(test), result.getStatus().name().toLowerCase(), millis, error);
        } else if (result.getStatus() != TestExecutionResult.Status.SUCCESSFUL) {
            Results.problem(test.getDisplayName(), error);
        }
    }

    /** `Class.method`, and `[2]` for the second invocation of a template. */
    private static String name(TestIdentifier test) {
        List<UniqueId.Segment> segments = test.getUniqueIdObject().getSegments();
        String last = segments.get(segments.size() - 1).getValue();
        String invocation = last.startsWith("#") ? "[" + last.substring(1) + "]" : "";
        MethodSource source = (MethodSource) test.getSource().orElseThrow();
        return source.getClassName() + "." + source.getMethodName() + invocation;
    }
}
