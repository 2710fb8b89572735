import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Applications of a migration: producers and consumers that move between clusters within one JVM, so that its start
 * is no part of a pause. On stdin one command a line, its fields separated by tabs; on stdout one line of JSON for
 * each. What the applications live through goes to the history, a file of lines with tabs:
 *
 * <pre>
 * ack    ms cluster producer topic partition offset value transaction
 * no     ms cluster producer topic partition value error transaction
 * end    ms cluster producer transaction committed|aborted|unknown
 * read   ms cluster group topic partition offset value
 * trouble ms cluster client words
 * </pre>
 *
 * A value is producer-partition-number, and the same number is never sent twice: what is refused stays refused.
 */
public class MigrationLoad {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    /** Longer than a producer waits for its first answer (max.block.ms). */
    private static final Duration STOPPING = Duration.ofSeconds(90);
    private static final int TICK_MS = 20;
    private static final int MOST_IN_TRANSACTION = 8;
    private static final String FILLER = "|the same old story".repeat(4);

    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private final Map<String, Map<String, Object>> clusters = new HashMap<>();
    private final Map<String, Writer> writers = new ConcurrentHashMap<>();
    private final Map<String, List<Reader>> readers = new ConcurrentHashMap<>();
    private final Map<String, int[]> numbers = new ConcurrentHashMap<>();
    private final Map<String, KafkaProducer<String, String>> strangers = new HashMap<>();
    private History history;

    public static void main(String[] arguments) throws Exception {
        MigrationLoad load = new MigrationLoad();
        System.setOut(System.err); // log4j's console: only answers go to standard output
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] command = line.split("\t", -1);
            try {
                load.out.println("{\"ok\": " + load.obey(command) + "}");
            } catch (Exception error) {
                load.out.println("{\"failed\": " + quoted(command[0] + ": " + error) + "}");
            }
        }
        Runtime.getRuntime().halt(0); // whoever sent commands is gone
    }

    private static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", " ").replace("\t", " ") + "\"";
    }

    private String obey(String[] command) throws Exception {
        switch (command[0]) {
            case "cluster" -> cluster(command);
            case "round" -> round(command[1]);
            case "produce" -> produce(command);
            case "stop-producers" -> stopProducers(command[1]);
            case "consume" -> consume(command);
            case "stop-consumers" -> stopConsumers(command[1]);
            case "stray" -> {
                return Long.toString(stray(command));
            }
            case "dump" -> {
                return Integer.toString(dump(command));
            }
            case "counts" -> {
                return history.counts();
            }
            default -> throw new IllegalArgumentException(command[0]);
        }
        return "true";
    }

    /** NAME key=value...: a cluster, and how clients reach it. */
    private void cluster(String[] command) {
        Map<String, Object> settings = new HashMap<>();
        for (int index = 2; index < command.length; index++) {
            String[] parts = command[index].split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        clusters.put(command[1], settings);
    }

    /** FILE: begin another history, and count records from zero again. */
    private void round(String file) throws IOException {
        if (history != null) {
            history.close();
        }
        history = new History(Path.of(file));
        numbers.clear();
    }

    /** CLUSTER KIND TOPIC PARTITIONS RATE KEYS NAME: start a producer; it goes on counting where it was stopped. */
    private void produce(String[] command) {
        String name = command[7];
        int partitions = Integer.parseInt(command[4]);
        Writer writer = new Writer();
        writer.name = name;
        writer.cluster = command[1];
        writer.kind = command[2];
        writer.topic = command[3];
        writer.rate = Double.parseDouble(command[5]);
        writer.keys = Integer.parseInt(command[6]);
        writer.count = numbers.computeIfAbsent(name, any -> new int[partitions]);
        writer.chance = new Random(name.hashCode());
        writers.put(name, writer);
        writer.start();
    }

    private void stopProducers(String names) throws InterruptedException {
        List<Writer> stopped = new ArrayList<>();
        for (String name : names.split(",")) {
            Writer writer = writers.remove(name);
            if (writer != null) {
                writer.stopped = true;
                stopped.add(writer);
            }
        }
        for (Writer writer : stopped) {
            writer.join(STOPPING.toMillis());
            if (writer.isAlive()) {
                throw new IllegalStateException(writer.name + " does not stop");
            }
        }
    }

    /** CLUSTER GROUP PROTOCOL ISOLATION MEMBERS TOPICS: start a group. */
    private void consume(String[] command) {
        List<Reader> members = new ArrayList<>();
        for (int index = 0; index < Integer.parseInt(command[5]); index++) {
            Reader reader = new Reader();
            reader.cluster = command[1];
            reader.group = command[2];
            reader.protocol = command[3];
            reader.isolation = command[4];
            reader.topics = List.of(command[6].split(","));
            reader.number = index;
            members.add(reader);
        }
        readers.put(command[2], members);
        members.forEach(Thread::start);
    }

    private void stopConsumers(String groups) throws InterruptedException {
        List<Reader> stopped = new ArrayList<>();
        for (String group : groups.split(",")) {
            List<Reader> members = readers.remove(group);
            if (members != null) {
                stopped.addAll(members);
            }
        }
        for (Reader reader : stopped) {
            reader.stopped = true;
            reader.consumer.wakeup();
        }
        for (Reader reader : stopped) {
            reader.join(PATIENCE.toMillis());
            if (reader.isAlive()) {
                throw new IllegalStateException("a member of " + reader.group + " does not stop");
            }
        }
    }

    /** CLUSTER TOPIC PARTITION: write one record there as somebody whom nothing holds; returns its offset. */
    private long stray(String[] command) throws Exception {
        int partition = Integer.parseInt(command[3]);
        int number = numbers.computeIfAbsent("stray", any -> new int[64])[partition]++;
        String value = "stray-" + partition + "-" + number;
        KafkaProducer<String, String> producer =
            strangers.computeIfAbsent(command[1], name -> new KafkaProducer<>(producing(name, Map.of())));
        RecordMetadata there = producer
            .send(new ProducerRecord<>(command[2], partition, "stray-" + number, value))
            .get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        history.tell("ack", command[1], "stray", command[2], partition, there.offset(), value, "");
        return there.offset();
    }

    /** CLUSTER ISOLATION TOPIC FILE: write all records of a topic to a file; returns their number. */
    private int dump(String[] command) throws IOException {
        Map<String, Object> settings = new HashMap<>(clusters.get(command[1]));
        settings.put("isolation.level", command[2]);
        settings.put("enable.auto.commit", "false");
        int found = 0;
        try (KafkaConsumer<byte[], byte[]> consumer =
                 new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
             BufferedWriter file = Files.newBufferedWriter(Path.of(command[4]))) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (PartitionInfo info : consumer.partitionsFor(command[3], PATIENCE)) {
                partitions.add(new TopicPartition(info.topic(), info.partition()));
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            while (partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException(command[3] + " can't be read to its end");
                }
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(200))) {
                    file.write(line(each));
                    found++;
                }
            }
        }
        return found;
    }

    private static String line(ConsumerRecord<byte[], byte[]> each) {
        StringBuilder headers = new StringBuilder();
        for (Header header : each.headers()) {
            headers.append(header.key()).append('=').append(encoded(header.value())).append(',');
        }
        return String.join("\t", "" + each.partition(), "" + each.offset(), "" + each.timestamp(),
            encoded(each.key()), encoded(each.value()), headers) + "\n";
    }

    private static String encoded(byte[] bytes) {
        return bytes == null ? "-" : Base64.getEncoder().encodeToString(bytes);
    }

    private Map<String, Object> producing(String cluster, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(clusters.get(cluster));
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        settings.put("linger.ms", "5");
        settings.put("max.block.ms", "10000");
        settings.put("delivery.timeout.ms", "20000");
        settings.put("request.timeout.ms", "10000");
        settings.put("reconnect.backoff.max.ms", "500");
        settings.putAll(more);
        return settings;
    }

    /** One producer at one cluster. */
    private final class Writer extends Thread {
        private String name;
        private String cluster;
        private String kind;
        private String topic;
        private double rate;
        private int keys;
        private int[] count;
        private Random chance;
        private volatile boolean stopped;

        @Override
        public void run() {
            while (!stopped) {
                try (KafkaProducer<String, String> producer = new KafkaProducer<>(producing(cluster, settings()))) {
                    if (kind.equals("transactional")) {
                        producer.initTransactions();
                        transactions(producer);
                    } else {
                        records(producer);
                    }
                } catch (KafkaException error) {
                    history.tell("trouble", cluster, name, error);
                    pause(200);
                }
            }
        }

        private Map<String, Object> settings() {
            return switch (kind) {
                case "idempotent" -> Map.of("enable.idempotence", "true", "client.id", name);
                case "acks1" -> Map.of("enable.idempotence", "false", "acks", "1", "client.id", name);
                case "transactional" ->
                    Map.of("transactional.id", name, "transaction.timeout.ms", "10000", "client.id", name);
                default -> throw new IllegalArgumentException(kind);
            };
        }

        private void records(KafkaProducer<String, String> producer) {
            double due = 0;
            while (!stopped) {
                for (due += rate * TICK_MS / 1000; due >= 1; due--) {
                    send(producer, "");
                }
                pause(TICK_MS);
            }
            producer.flush();
        }

        private void transactions(KafkaProducer<String, String> producer) {
            for (int number = 0; !stopped; number++) {
                String transaction = name + "-" + cluster + "-" + System.nanoTime() + "-" + number;
                boolean aborts = chance.nextInt(3) == 0;
                producer.beginTransaction();
                int size = 1 + chance.nextInt(MOST_IN_TRANSACTION);
                for (int index = 0; index < size; index++) {
                    send(producer, transaction);
                }
                String ended = end(producer, aborts);
                history.tell("end", cluster, name, transaction, ended);
                if (ended.equals("unknown")) {
                    return;
                }
                pause((long) (1000 * size / rate));
            }
        }

        private String end(KafkaProducer<String, String> producer, boolean aborts) {
            if (!aborts) {
                try {
                    producer.commitTransaction();
                    return "committed";
                } catch (org.apache.kafka.common.errors.TimeoutException | InterruptException error) {
                    history.tell("trouble", cluster, name, error);
                    return "unknown";
                } catch (KafkaException error) {
                    pause(50);
                }
            } else {
                producer.flush();
            }
            try {
                producer.abortTransaction();
                return "aborted";
            } catch (KafkaException error) {
                history.tell("trouble", cluster, name, error);
                return "unknown";
            }
        }

        private void send(KafkaProducer<String, String> producer, String transaction) {
            int partition = chance.nextInt(count.length);
            int number = count[partition]++;
            String value = name + "-" + partition + "-" + number;
            ProducerRecord<String, String> record =
                new ProducerRecord<>(topic, partition, "key-" + number % keys, value + FILLER);
            record.headers().add("number", Integer.toString(number).getBytes(StandardCharsets.UTF_8));
            try {
                producer.send(record, (there, error) -> {
                    if (error == null) {
                        history.tell("ack", cluster, name, topic, partition, there.offset(), value, transaction);
                    } else {
                        history.tell("no", cluster, name, topic, partition, value, error, transaction);
                    }
                });
            } catch (KafkaException error) { // a transaction in a state in which nothing more is sent
                history.tell("no", cluster, name, topic, partition, value, error, transaction);
            }
        }
    }

    /** One member of a group at one cluster. */
    private final class Reader extends Thread {
        private String cluster;
        private String group;
        private String protocol;
        private String isolation;
        private List<String> topics;
        private int number;
        private KafkaConsumer<String, String> consumer;
        private volatile boolean stopped;

        @Override
        public synchronized void start() {
            Map<String, Object> settings = new HashMap<>(clusters.get(cluster));
            settings.put("group.id", group);
            settings.put("client.id", group + "-" + number);
            settings.put("group.protocol", protocol);
            settings.put("isolation.level", isolation);
            settings.put("enable.auto.commit", "false");
            settings.put("auto.offset.reset", "earliest");
            settings.put("max.poll.records", "100");
            settings.put("metadata.max.age.ms", "1000");
            settings.put("reconnect.backoff.max.ms", "500");
            consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
            consumer.subscribe(topics);
            super.start();
        }

        @Override
        public void run() {
            while (!stopped) {
                try {
                    ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                    for (ConsumerRecord<String, String> each : records) {
                        String value = each.value() == null ? "-" : each.value().split("\\|", 2)[0];
                        history.tell("read", cluster, group, each.topic(), each.partition(), each.offset(), value);
                    }
                    if (!records.isEmpty()) {
                        commit();
                    }
                } catch (WakeupException woken) {
                    continue; // asked to stop
                } catch (KafkaException error) {
                    history.tell("trouble", cluster, group, error);
                    pause(200);
                }
            }
            try {
                consumer.close();
            } catch (KafkaException error) {
                history.tell("trouble", cluster, group, error);
            }
        }

        private void commit() {
            try {
                consumer.commitSync();
            } catch (WakeupException woken) { // what was read is committed all the same
                consumer.commitSync();
            }
        }
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    /** What happened, a line each. */
    private static final class History {
        private final BufferedWriter file;
        private final Map<String, Integer> counts = new HashMap<>();

        History(Path path) throws IOException {
            file = Files.newBufferedWriter(path);
        }

        synchronized void tell(String what, Object... more) {
            StringBuilder line = new StringBuilder(what).append('\t').append(System.currentTimeMillis());
            for (Object each : more) {
                line.append('\t').append(each.toString().replace('\t', ' ').replace('\n', ' '));
            }
            try {
                file.write(line.append('\n').toString());
                file.flush();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            counts.merge(what + " " + more[0] + " " + more[1], 1, Integer::sum);
        }

        synchronized String counts() {
            Collection<String> parts = new ArrayList<>();
            counts.forEach((what, count) -> parts.add(quoted(what) + ": " + count));
            return "{" + String.join(", ", parts) + "}";
        }

        synchronized void close() throws IOException {
            file.close();
        }
    }
}
