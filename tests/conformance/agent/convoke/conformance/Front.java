package convoke.conformance;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** One Convoke process with free ports and a data directory of its own. */
final class Front {
    private static final Pattern NODE = Pattern.compile("node id=\\d+ upstream=\\S*:(\\d+) listen=\\S*:(\\d+)");
    private static final long START_LIMIT = TimeUnit.SECONDS.toNanos(60);
    private static final long STOP_LIMIT_SECONDS = 15;
    private static final AtomicInteger COUNT = new AtomicInteger();

    private final Path data;
    private final File log;
    private final Process process;
    private boolean ready;

    /** Starts `program`; `nodes` is told the port of each broker with the one that stands for it, whenever there is one. */
    Front(String program, String servers, BiConsumer<Integer, Integer> nodes) throws IOException {
        data = Files.createTempDirectory("convoke-conformance-");
        log = Results.logFile(COUNT.incrementAndGet());
        ProcessBuilder builder = new ProcessBuilder(program, "run", "--upstream", servers, "--listen", "127.0.0.1:0",
            "--admin", "127.0.0.1:0", "--data", data.toString());
        // Settings of the test run are none of Convoke's.
        builder.environment().keySet().removeIf(name -> name.startsWith("CONVOKE_"));
        process = builder.redirectError(log).start();
        Thread reader = new Thread(() -> follow(nodes), "convoke's output");
        reader.setDaemon(true);
        reader.start();
    }

    private void follow(BiConsumer<Integer, Integer> nodes) {
        try (BufferedReader lines = process.inputReader()) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                Matcher node = NODE.matcher(line);
                synchronized (this) {
                    if (node.matches()) {
                        nodes.accept(Integer.valueOf(node.group(1)), Integer.valueOf(node.group(2)));
                    }
                    ready |= line.startsWith("ready ");
                    notifyAll();
                }
            }
        } catch (IOException ended) {
            // The process was stopped: what reads its output has nothing more to do.
        }
    }

    /** Waits until it serves, and `known`, which `nodes` fills, has all of the brokers' ports. */
    synchronized void awaitReady(List<Integer> brokers, Collection<Integer> known) throws InterruptedException {
        long deadline = System.nanoTime() + START_LIMIT;
        while (!ready || !known.containsAll(brokers)) {
            long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
            if (left <= 0 || !process.isAlive()) {
                throw new IllegalStateException("Convoke is not ready in front of ports " + brokers + "; see " + log);
            }
            wait(Math.min(left, 500));
        }
    }

    /** SIGTERM, and SIGKILL where that is not enough. */
    void stop() {
        process.destroy();
        try {
            if (!process.waitFor(STOP_LIMIT_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
                Results.problem("Convoke did not end within " + STOP_LIMIT_SECONDS + " s; see " + log, null);
            } else if (process.exitValue() != 0) {
                Results.problem("Convoke ended with exit code " + process.exitValue() + "; see " + log, null);
            }
        } catch (InterruptedException interrupted) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        try (Stream<Path> files = Files.walk(data)) {
            files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
