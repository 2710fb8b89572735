import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Fills topics as a producer of the broker's own version does. Arguments: the brokers, and how many partitions each topic
 * has; then a topic a line: its name, a codec, a kind, and how many records.
 */
public class WriteTopics {
    private static final int TRANSACTION = 25;
    private static final int KEYS = 40;
    private static final long SEGMENT_MS = 1500;

    private static int partitions;

    public static void main(String[] arguments) throws Exception {
        partitions = Integer.parseInt(arguments[1]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ");
            try (KafkaProducer<byte[], byte[]> producer = producer(arguments[0], parts[0], parts[1], parts[2])) {
                write(producer, parts[0], parts[2], Integer.parseInt(parts[3]));
            }
        }
    }

    private static KafkaProducer<byte[], byte[]> producer(String servers, String topic, String codec, String kind) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("compression.type", codec);
        settings.put("acks", "all");
        settings.put("batch.size", "4096");
        settings.put("linger.ms", "5");
        if (kind.equals("transactional")) {
            settings.put("transactional.id", topic);
        }
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static void write(KafkaProducer<byte[], byte[]> producer, String topic, String kind, int records)
            throws Exception {
        boolean transactional = kind.equals("transactional");
        if (transactional) {
            producer.initTransactions();
        }
        for (int number = 0; number < records; number++) {
            if (transactional && number % TRANSACTION == 0) {
                producer.beginTransaction();
            }
            if (kind.equals("compacted") && number == records - KEYS) {
                producer.flush();
                Thread.sleep(SEGMENT_MS); // The next record begins a new segment, and the old one can be cleaned.
            }
            producer.send(record(topic, kind, number));
            if (transactional && number % TRANSACTION == TRANSACTION - 1) {
                if (number / TRANSACTION % 4 == 3) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        producer.flush();
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, String kind, int number) {
        boolean keyed = !kind.equals("plain") && number % 7 != 0 || kind.equals("compacted");
        byte[] key = keyed ? bytes("key-" + (kind.equals("compacted") ? number % KEYS : number)) : null;
        byte[] value = keyed && number % 11 == 0 ? null : bytes("value-" + number + "-" + "x".repeat(number % 200));
        List<Header> headers = kind.equals("old") || number % 3 != 0
                ? List.of()
                : List.of(new RecordHeader("number", bytes("" + number)), new RecordHeader("none", (byte[]) null));
        long timestamp = System.currentTimeMillis() - 1000 + number % 10;
        return new ProducerRecord<>(topic, number % partitions, timestamp, key, value, headers);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
