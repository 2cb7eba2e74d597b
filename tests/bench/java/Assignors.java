import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Kafka's own server-side assignors, timed in this JVM.
 *
 * Each line of standard input is a question: seconds to measure, assignor (uniform, range), members, topics, partitions of each topic,
 * subscriptions ("0-200;200-300,350-400": two of them, as spans of topics' numbers; the members have them in turn), and what changed
 * (full, join, leave). The answer is one line: median CPU time of a call in ms, partitions that a member gained, least and greatest load.
 */
public class Assignors {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** Where the JVM cannot drop a result as unused. */
    private static volatile Object sink;

    private final Map<String, Question> questions = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        Assignors assignors = new Assignors();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(assignors.answer(line.split(" ")));
        }
    }

    private String answer(String[] words) {
        double seconds = Double.parseDouble(words[0]);
        String key = String.join(" ", Arrays.copyOfRange(words, 1, words.length));
        Question question = questions.computeIfAbsent(key, __ -> new Question(words));
        return "answer " + question.measure(seconds) + " " + question.outcome;
    }

    /** A group, and the assignor that is to be timed on it. */
    private static final class Question {
        private final ConsumerGroupPartitionAssignor assignor;
        private final SubscribedTopicDescriber describer;
        private final GroupSpec group;
        private final String outcome;

        Question(String[] words) {
            this.assignor = words[1].equals("uniform") ? new UniformAssignor() : new RangeAssignor();
            int members = Integer.parseInt(words[2]);
            int topics = Integer.parseInt(words[3]);
            int partitions = Integer.parseInt(words[4]);
            List<Set<Uuid>> subscriptions = new ArrayList<>();
            Uuid[] ids = new Uuid[topics];
            Arrays.setAll(ids, __ -> Uuid.randomUuid());
            for (String spans : words[5].split(";")) {
                Set<Uuid> subscription = new HashSet<>();
                for (String span : spans.split(",")) {
                    String[] bounds = span.split("-");
                    subscription.addAll(Arrays.asList(ids)
                        .subList(Integer.parseInt(bounds[0]), Integer.parseInt(bounds[1])));
                }
                subscriptions.add(subscription);
            }
            this.describer = describer(ids, partitions);
            String change = words[6];
            // The group has its members after the change.
            int before = change.equals("join") ? members - 1 : change.equals("leave") ? members + 1 : members;
            Map<String, MemberAssignment> targets = change.equals("full")
                ? Collections.emptyMap()
                : assignor.assign(group(before, subscriptions, Collections.emptyMap()), describer).members();
            this.group = group(members, subscriptions, targets);
            this.outcome = outcome(targets, assignor.assign(group, describer).members());
        }

        double measure(double seconds) {
            List<Long> times = new ArrayList<>();
            long end = System.nanoTime() + (long) (seconds * 1e9);
            while (times.size() < 3 || System.nanoTime() < end) {
                long start = THREADS.getCurrentThreadCpuTime();
                GroupAssignment assignment = assignor.assign(group, describer);
                times.add(THREADS.getCurrentThreadCpuTime() - start);
                sink = assignment;
            }
            Collections.sort(times);
            return times.get(times.size() / 2) / 1e6;
        }
    }

    private static SubscribedTopicDescriber describer(Uuid[] ids, int partitions) {
        Map<Uuid, Integer> sizes = new HashMap<>();
        for (Uuid id : ids) {
            sizes.put(id, partitions);
        }
        return new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topicId) {
                return sizes.getOrDefault(topicId, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topicId, int partition) {
                return Collections.emptySet();
            }
        };
    }

    private static GroupSpec group(int members, List<Set<Uuid>> subscriptions, Map<String, MemberAssignment> targets) {
        Map<String, MemberSubscriptionAndAssignmentImpl> specs = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (int member = 0; member < members; member++) {
            String id = "member" + member;
            MemberAssignment target = targets.get(id);
            Map<Uuid, Set<Integer>> held = target == null ? Collections.emptyMap() : target.partitions();
            held.forEach((topic, partitions) -> partitions.forEach(partition ->
                owners.computeIfAbsent(topic, __ -> new HashMap<>()).put(partition, id)));
            specs.put(id, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(),
                Optional.empty(),
                subscriptions.get(member % subscriptions.size()),
                new Assignment(Collections.unmodifiableMap(held))
            ));
        }
        SubscriptionType type = subscriptions.size() == 1 ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        return new GroupSpecImpl(specs, type, owners);
    }

    private static String outcome(Map<String, MemberAssignment> before, Map<String, MemberAssignment> after) {
        int gained = 0;
        int least = Integer.MAX_VALUE;
        int most = 0;
        for (Map.Entry<String, MemberAssignment> entry : after.entrySet()) {
            MemberAssignment old = before.get(entry.getKey());
            int load = 0;
            for (Map.Entry<Uuid, Set<Integer>> topic : entry.getValue().partitions().entrySet()) {
                Set<Integer> held = old == null ? Set.of() : old.partitions().getOrDefault(topic.getKey(), Set.of());
                for (int partition : topic.getValue()) {
                    gained += held.contains(partition) ? 0 : 1;
                    load++;
                }
            }
            least = Math.min(least, load);
            most = Math.max(most, load);
        }
        return gained + " " + least + " " + most;
    }
}
