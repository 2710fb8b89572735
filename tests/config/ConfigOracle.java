import java.io.FileInputStream;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

import org.apache.kafka.connect.mirror.MirrorCheckpointConfig;
import org.apache.kafka.connect.mirror.MirrorConnectorConfig;
import org.apache.kafka.connect.mirror.MirrorHeartbeatConfig;
import org.apache.kafka.connect.mirror.MirrorMakerConfig;
import org.apache.kafka.connect.mirror.MirrorSourceConfig;
import org.apache.kafka.connect.mirror.MirrorSourceConnector;
import org.apache.kafka.connect.mirror.SourceAndTarget;

/** What MirrorMaker 2 makes of each file: lines of file, pair, kind, key and value, with tabs between them. */
public class ConfigOracle {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            Properties properties = new Properties();
            try (FileInputStream stream = new FileInputStream(file)) {
                properties.load(stream);
            }
            Map<String, String> keys = new HashMap<>();
            properties.stringPropertyNames().forEach(key -> keys.put(key, properties.getProperty(key)));
            MirrorMakerConfig config = new MirrorMakerConfig(keys);
            for (SourceAndTarget pair : config.clusterPairs()) {
                Map<String, String> base = config.connectorBaseConfig(pair, MirrorSourceConnector.class);
                print(file, pair, "original", base);
                print(file, pair, "worker", config.workerConfig(pair));
                List<MirrorConnectorConfig> connectors = List.of(
                    new MirrorSourceConfig(base), new MirrorCheckpointConfig(base), new MirrorHeartbeatConfig(base));
                for (MirrorConnectorConfig connector : connectors)
                    print(file, pair, "connector", connector.values());
                Method consumer = MirrorConnectorConfig.class.getDeclaredMethod("sourceConsumerConfig", String.class);
                consumer.setAccessible(true);
                print(file, pair, "consumer", (Map<?, ?>) consumer.invoke(connectors.get(0), "role"));
            }
        }
    }

    private static void print(String file, SourceAndTarget pair, String kind, Map<?, ?> values) {
        new TreeMap<>(values).forEach((key, value) ->
            System.out.println(String.join("\t", file, pair.toString(), kind, (String) key, text(value))));
    }

    private static String text(Object value) {
        if (value instanceof Class<?> type)
            return type.getName();
        if (value instanceof List<?> list) {
            List<String> words = new ArrayList<>();
            list.forEach(word -> words.add(word.toString()));
            return String.join(", ", words);
        }
        return String.valueOf(value).strip();
    }
}
