package convoke.conformance;

import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** What src/results.rs reads: a file for each JVM, a line for each fact, its fields between tabs. */
final class Results {
    private static final Path FOLDER = Path.of(System.getProperty("convoke.results"));
    private static final String JVM = Long.toString(ProcessHandle.current().pid());

    private Results() {
    }

    /** What reached the brokers in the case, and then how it ended, so that a case that is there is there whole. */
    static void ended(String name, String status, long millis, Throwable error) {
        Requests.taken().forEach((request, count) -> write("request", name, request, count.toString()));
        write("case", name, status, Long.toString(millis), escaped(error));
    }

    /** Something that is wrong with the run, whatever its cases say. */
    static void problem(String what, Throwable error) {
        write("problem", Cases.current(), what, escaped(error));
    }

    /** The log of the so manieth Convoke of this JVM. */
    static File logFile(int number) throws IOException {
        Path logs = Files.createDirectories(FOLDER.resolve("convoke"));
        String name = Cases.current().replaceAll("^.*\\.(?=[^.]*\\.)", "");
        return logs.resolve(name + "-" + JVM + "-" + number + ".log").toFile();
    }

    private static synchronized void write(String... fields) {
        try {
            Files.createDirectories(FOLDER);
            Files.writeString(FOLDER.resolve(JVM + ".tsv"), String.join("\t", fields) + "\n",
                StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    private static String escaped(Throwable error) {
        if (error == null) {
            return "";
        }
        StringWriter text = new StringWriter();
        error.printStackTrace(new PrintWriter(text));
        return text.toString().replace("\\", "\\\\").replace("\t", "\\t").replace("\r", "").replace("\n", "\\n");
    }
}
