import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.converters.ByteArrayConverter;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;
import org.apache.kafka.connect.storage.StringConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/**
 * Connect's own transforms. A line has a record and stages, each with converters for key and value around it; the
 * answer is the record, null if it was dropped, or the error's class.
 */
public class TransformOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, Converter> CONVERTERS = new HashMap<>();
    private static final ByteArrayConverter BYTES = new ByteArrayConverter();
    private static final SimpleHeaderConverter SIMPLE = new SimpleHeaderConverter();

    public static void main(String[] arguments) throws Exception {
        Converter json = new JsonConverter();
        json.configure(Map.of("schemas.enable", "false"), false);
        Converter text = new StringConverter();
        text.configure(Map.of(), false);
        CONVERTERS.put("json", json);
        CONVERTERS.put("string", text);
        CONVERTERS.put("bytes", BYTES);
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        out.println(Runtime.version().feature());
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine())
            out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
    }

    private static ObjectNode answer(JsonNode question) {
        ObjectNode answer = JSON.createObjectNode();
        String during = "config";
        try {
            JsonNode given = question.get("record");
            SourceRecord record = new SourceRecord(
                Map.of(), Map.of(), given.get("topic").asText(),
                given.get("partition").isNull() ? null : given.get("partition").asInt(),
                BYTES.toConnectData("", null).schema(), bytes(given.get("key")),
                BYTES.toConnectData("", null).schema(), bytes(given.get("value")),
                given.get("timestamp").isNull() ? null : given.get("timestamp").asLong(), new ConnectHeaders());
            for (JsonNode header : given.get("headers"))
                record.headers().addBytes(header.get(0).asText(), bytes(header.get(1)));
            for (JsonNode stage : question.get("stages")) {
                during = "config";
                Transformation<SourceRecord> transformation = made(stage);
                Predicate<SourceRecord> predicate = stage.hasNonNull("predicate") ? made(stage.get("predicate")) : null;
                during = "record";
                if (predicate == null || stage.get("negate").asBoolean() ^ predicate.test(record))
                    record = applied(record, transformation, stage);
                if (record == null)
                    break;
            }
            answer.set("record", record == null ? JSON.nullNode() : described(record));
        } catch (Exception error) {
            answer.put("error", during);
            answer.put("class", error.getClass().getSimpleName());
            answer.put("message", String.valueOf(error.getMessage()));
        }
        return answer;
    }

    @SuppressWarnings("unchecked")
    private static <T extends org.apache.kafka.common.Configurable> T made(JsonNode given) throws Exception {
        Map<String, String> options = new HashMap<>();
        given.get("options").properties().forEach(entry -> options.put(entry.getKey(), entry.getValue().asText()));
        T made = (T) Class.forName(given.get("type").asText()).getDeclaredConstructor().newInstance();
        made.configure(options);
        return made;
    }

    private static SourceRecord applied(SourceRecord record, Transformation<SourceRecord> by, JsonNode stage) {
        Converter keys = CONVERTERS.get(stage.get("key").asText());
        Converter values = CONVERTERS.get(stage.get("value").asText());
        SchemaAndValue key = keys.toConnectData("", (byte[]) record.key());
        SchemaAndValue value = values.toConnectData("", (byte[]) record.value());
        SourceRecord done = by.apply(record.newRecord(
            record.topic(), record.kafkaPartition(), key.schema(), key.value(), value.schema(), value.value(),
            record.timestamp(), record.headers()));
        if (done == null)
            return null;
        keys = stage.has("keyAfter") ? CONVERTERS.get(stage.get("keyAfter").asText()) : keys;
        return done.newRecord(
            done.topic(), done.kafkaPartition(),
            BYTES.toConnectData("", null).schema(), keys.fromConnectData("", done.keySchema(), done.key()),
            BYTES.toConnectData("", null).schema(), values.fromConnectData("", done.valueSchema(), done.value()),
            done.timestamp(), done.headers());
    }

    private static ObjectNode described(SourceRecord record) throws Exception {
        ObjectNode made = JSON.createObjectNode();
        made.put("topic", record.topic());
        made.put("partition", record.kafkaPartition());
        made.put("timestamp", record.timestamp());
        made.put("key", (byte[]) record.key());
        made.put("value", (byte[]) record.value());
        ArrayNode headers = made.putArray("headers");
        for (Header header : record.headers()) {
            ArrayNode one = headers.addArray().add(header.key());
            try {
                one.add(BYTES.fromConnectHeader("", header.key(), header.schema(), header.value())).add("bytes");
            } catch (DataException refused) {
                one.add(text(header)).add("refused");
            }
        }
        return made;
    }

    /** What Connect's default converter for headers writes; objects and lists as JSON, since that writes fields anyhow. */
    private static byte[] text(Header header) {
        boolean nested = header.value() instanceof Map || header.value() instanceof java.util.List;
        if (!nested)
            return SIMPLE.fromConnectHeader("", header.key(), header.schema(), header.value());
        return header.schema() == null ? CONVERTERS.get("json").fromConnectData("", null, header.value()) : null;
    }

    private static byte[] bytes(JsonNode text) throws Exception {
        return text.isNull() ? null : text.binaryValue();
    }
}
