import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.MessageFormatter;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.connect.mirror.Checkpoint;
import org.apache.kafka.connect.mirror.Heartbeat;
import org.apache.kafka.connect.mirror.MirrorCheckpointConfig;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.OffsetSync;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/**
 * Asks MirrorMaker 2's own classes. The arguments are a client's settings, key=value. On stdin one question a line,
 * its fields separated by tabs; on stdout one line an item, each behind "> ", and a line "." after the last.
 */
public class Oracle {
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    private static final String PACKAGE = "org.apache.kafka.connect.mirror.";

    private final Map<String, Object> settings = new HashMap<>();
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] arguments) throws Exception {
        Oracle oracle = new Oracle();
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            oracle.settings.put(parts[0], parts[1]);
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] question = line.split("\t", -1);
            try {
                oracle.answer(question);
            } catch (Exception error) {
                oracle.say("failed: " + error);
            }
            oracle.out.println(".");
        }
    }

    private void say(Object item) {
        out.println("> " + item);
    }

    private void answer(String[] question) throws Exception {
        switch (question[0]) {
            case "client" -> client(question);
            case "utils" -> utils(question);
            case "format" -> format(question[1], question[2]);
            case "write" -> write(question);
            case "store" -> store(question);
            case "translate" -> translate(question);
            default -> throw new IllegalArgumentException(question[0]);
        }
    }

    private void client(String[] question) throws Exception {
        try (MirrorClient client = new MirrorClient(settings)) {
            switch (question[1]) {
                case "hops" -> say(client.replicationHops(question[2]));
                case "heartbeats" -> names(client.heartbeatTopics());
                case "checkpoints" -> names(client.checkpointTopics());
                case "upstreams" -> names(client.upstreamClusters());
                case "remotes" -> names(
                    question.length == 2 ? client.remoteTopics() : client.remoteTopics(question[2]));
                case "offsets" -> offsets("", client.remoteConsumerOffsets(question[3], question[2], PATIENCE));
                case "matching" -> groups(
                    client.remoteConsumerOffsets(Pattern.compile(question[3]), question[2], PATIENCE));
                default -> throw new IllegalArgumentException(question[1]);
            }
        }
    }

    private void utils(String[] question) throws Exception {
        switch (question[1]) {
            case "hops" -> say(RemoteClusterUtils.replicationHops(settings, question[2]));
            case "heartbeats" -> names(RemoteClusterUtils.heartbeatTopics(settings));
            case "checkpoints" -> names(RemoteClusterUtils.checkpointTopics(settings));
            case "upstreams" -> names(RemoteClusterUtils.upstreamClusters(settings));
            case "offsets" -> offsets(
                "", RemoteClusterUtils.translateOffsets(settings, question[2], question[3], PATIENCE));
            case "matching" -> groups(
                RemoteClusterUtils.translateOffsets(settings, question[2], Pattern.compile(question[3]), PATIENCE));
            default -> throw new IllegalArgumentException(question[1]);
        }
    }

    private void names(Set<String> names) {
        new TreeSet<>(names).forEach(this::say);
    }

    private void groups(Map<String, Map<TopicPartition, OffsetAndMetadata>> groups) {
        new TreeMap<>(groups).forEach((group, offsets) -> offsets(group + "\t", offsets));
    }

    private void offsets(String before, Map<TopicPartition, OffsetAndMetadata> offsets) {
        offsets.forEach((where, committed) -> say(
            before + where.topic() + "\t" + where.partition() + "\t" + committed.offset() + "\t"
                + committed.metadata()));
    }

    /** Every record of a topic's partition 0, as one of the three formatters prints it. */
    private void format(String kind, String topic) throws Exception {
        MessageFormatter formatter = (MessageFormatter) Class
            .forName(PACKAGE + "formatters." + kind + "Formatter").getConstructor().newInstance();
        TopicPartition where = new TopicPartition(topic, 0);
        Map<String, Object> config = Map.of("bootstrap.servers", settings.get("bootstrap.servers"));
        try (KafkaConsumer<byte[], byte[]> consumer =
                 new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(where));
            consumer.seekToBeginning(List.of(where));
            long end = consumer.endOffsets(List.of(where)).get(where);
            while (consumer.position(where) < end) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(PATIENCE)) {
                    out.print("> " + record.timestamp() + "\t");
                    formatter.writeTo(record, out);
                }
            }
        }
    }

    private void write(String[] question) throws Exception {
        Object record = switch (question[2]) {
            case "heartbeat" -> new Heartbeat(question[3], question[4], Long.parseLong(question[5]));
            case "checkpoint" -> new Checkpoint(
                question[3], new TopicPartition(question[4], Integer.parseInt(question[5])),
                Long.parseLong(question[6]), Long.parseLong(question[7]), question[8]);
            case "sync" -> new OffsetSync(
                new TopicPartition(question[3], Integer.parseInt(question[4])),
                Long.parseLong(question[5]), Long.parseLong(question[6]));
            default -> throw new IllegalArgumentException(question[2]);
        };
        byte[] key = (byte[]) open(record.getClass().getDeclaredMethod("recordKey")).invoke(record);
        byte[] value = (byte[]) open(record.getClass().getDeclaredMethod("recordValue")).invoke(record);
        Map<String, Object> config = Map.of("bootstrap.servers", settings.get("bootstrap.servers"));
        try (KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            say(producer.send(new ProducerRecord<>(question[1], 0, key, value)).get().offset());
        }
    }

    /** mustReadToEnd, syncs at the start, syncs after it, upstream offsets: slots and translations. */
    private void store(String[] question) throws Exception {
        Class<?> kind = Class.forName(PACKAGE + "OffsetSyncStore");
        Constructor<?> constructor = kind.getDeclaredConstructor();
        constructor.setAccessible(true);
        Object store = constructor.newInstance();
        TopicPartition where = new TopicPartition("t", 0);
        set(kind, store, "initializationMustReadToEnd", Boolean.parseBoolean(question[1]));
        set(kind, store, "readToEnd", false);
        Method handle = open(kind.getDeclaredMethod("handleRecord", ConsumerRecord.class));
        feed(handle, store, where, question[2]);
        set(kind, store, "readToEnd", true);
        feed(handle, store, where, question[3]);
        Method slot = open(kind.getDeclaredMethod("syncFor", TopicPartition.class, int.class));
        List<String> slots = new ArrayList<>();
        for (int index = 0; index < 64; index++) {
            OffsetSync sync = (OffsetSync) slot.invoke(store, where, index);
            slots.add(sync.upstreamOffset() + ":" + sync.downstreamOffset());
        }
        say(String.join(" ", slots));
        say(translated(kind, store, where, question[4]));
    }

    /** Source and target alias, topic, partition, upstream offsets: as the checkpoint connector reads the syncs. */
    private void translate(String[] question) throws Exception {
        Map<String, String> config = new HashMap<>();
        for (String side : new String[] {"source", "target"}) {
            config.put(side + ".cluster.bootstrap.servers", String.valueOf(settings.get("bootstrap.servers")));
        }
        config.put("name", "oracle");
        config.put("connector.class", PACKAGE + "MirrorCheckpointConnector");
        config.put("source.cluster.alias", question[1]);
        config.put("target.cluster.alias", question[2]);
        Class<?> kind = Class.forName(PACKAGE + "OffsetSyncStore");
        Constructor<?> constructor = kind.getDeclaredConstructor(MirrorCheckpointConfig.class);
        constructor.setAccessible(true);
        TopicPartition where = new TopicPartition(question[3], Integer.parseInt(question[4]));
        try (AutoCloseable store = (AutoCloseable) constructor.newInstance(new MirrorCheckpointConfig(config))) {
            open(kind.getDeclaredMethod("start", boolean.class)).invoke(store, false);
            say(translated(kind, store, where, question[5]));
        }
    }

    private static String translated(Class<?> kind, Object store, TopicPartition where, String upstreams)
            throws Exception {
        Method translate = open(
            kind.getDeclaredMethod("translateDownstream", String.class, TopicPartition.class, long.class));
        List<String> found = new ArrayList<>();
        for (String upstream : upstreams.split(" ")) {
            OptionalLong offset = (OptionalLong) translate.invoke(store, "g", where, Long.parseLong(upstream));
            found.add(offset.isPresent() ? String.valueOf(offset.getAsLong()) : "None");
        }
        return String.join(" ", found);
    }

    private void feed(Method handle, Object store, TopicPartition where, String syncs) throws Exception {
        for (String pair : syncs.isEmpty() ? new String[0] : syncs.split(" ")) {
            String[] offsets = pair.split(":");
            OffsetSync sync = new OffsetSync(where, Long.parseLong(offsets[0]), Long.parseLong(offsets[1]));
            byte[] key = (byte[]) open(OffsetSync.class.getDeclaredMethod("recordKey")).invoke(sync);
            byte[] value = (byte[]) open(OffsetSync.class.getDeclaredMethod("recordValue")).invoke(sync);
            handle.invoke(store, new ConsumerRecord<>("syncs", 0, 0, key, value));
        }
    }

    private static Method open(Method method) {
        method.setAccessible(true);
        return method;
    }

    private static void set(Class<?> kind, Object store, String name, boolean value) throws Exception {
        Field field = kind.getDeclaredField(name);
        field.setAccessible(true);
        field.setBoolean(store, value);
    }
}
