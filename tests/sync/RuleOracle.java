import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.connect.mirror.*;

/** What the real MirrorSourceConnector and its policies say: a question a line, tabs between, and so its answer. */
public class RuleOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] parts = line.split("\t", -1);
            Stream<Object> answer = switch (parts[0]) {
                case "topic" -> topic(parts[1], parts[2], parts[3], parts[4], Boolean.parseBoolean(parts[5]), parts[6]);
                case "acl" -> acl(parts[1], Byte.parseByte(parts[2]), Byte.parseByte(parts[3]));
                case "config" -> config(parts[1], parts[2], parts[3], parts[4], parts[5]);
                default -> throw new IllegalArgumentException(line);
            };
            System.out.println(answer.map(String::valueOf).collect(Collectors.joining("\t")));
        }
    }

    private static Stream<Object> topic(
            String kind, String separator, String include, String exclude, boolean heartbeats, String topic)
            throws Exception {
        DefaultReplicationPolicy policy =
                kind.equals("identity") ? new IdentityReplicationPolicy() : new DefaultReplicationPolicy();
        policy.configure(Map.of("replication.policy.separator", separator, "source.cluster.alias", "us"));
        MirrorSourceConnector connector = connector(policy, include, exclude, Map.of(), heartbeats);
        return Stream.of(
                policy.formatRemoteTopic("us", topic), policy.topicSource(topic), policy.upstreamTopic(topic),
                policy.originalTopic(topic), policy.isHeartbeatsTopic(topic), policy.isCheckpointsTopic(topic),
                policy.isMM2InternalTopic(topic), policy.isInternalTopic(topic),
                call(connector, "isCycle", String.class, topic), call(connector, "shouldReplicateTopic", String.class, topic));
    }

    private static Stream<Object> acl(String topic, byte operation, byte permission) throws Exception {
        MirrorSourceConnector connector = connector(new DefaultReplicationPolicy(), ".*", "secret", Map.of(), true);
        AclBinding binding = new AclBinding(
                new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL),
                new AccessControlEntry("User:a", "*", AclOperation.fromCode(operation), AclPermissionType.fromCode(permission)));
        boolean copied = (boolean) call(connector, "shouldReplicateAcl", AclBinding.class, binding)
                && (boolean) call(connector, "shouldReplicateTopic", String.class, topic);
        if (!copied) {
            return Stream.of("none");
        }
        AclBinding made = (AclBinding) call(connector, "targetAclBinding", AclBinding.class, binding);
        return Stream.of(made.pattern().name(), made.entry().operation().code(), made.entry().permissionType().code());
    }

    private static Stream<Object> config(String name, String source, String readOnly, String sensitive, String from)
            throws Exception {
        MirrorSourceConnector connector =
                connector(new DefaultReplicationPolicy(), ".*", "", Map.of("use.defaults.from", from), true);
        Constructor<ConfigEntry> entries = ConfigEntry.class.getDeclaredConstructor(
                String.class, String.class, ConfigEntry.ConfigSource.class, boolean.class, boolean.class, List.class,
                ConfigEntry.ConfigType.class, String.class);
        entries.setAccessible(true);
        ConfigEntry entry = entries.newInstance(
                name, "v", ConfigEntry.ConfigSource.valueOf(source), Boolean.parseBoolean(sensitive),
                Boolean.parseBoolean(readOnly), List.of(), ConfigEntry.ConfigType.STRING, "");
        Method target = MirrorSourceConnector.class.getDeclaredMethod("targetConfig", Config.class, boolean.class);
        target.setAccessible(true);
        Config asked = new Config(List.of(entry));
        return Stream.of(
                !((Config) target.invoke(connector, asked, false)).entries().isEmpty(),
                !((Config) target.invoke(connector, asked, true)).entries().isEmpty());
    }

    private static MirrorSourceConnector connector(
            ReplicationPolicy policy, String include, String exclude, Map<String, String> properties, boolean heartbeats)
            throws Exception {
        DefaultTopicFilter topics = new DefaultTopicFilter();
        topics.configure(Map.of("topics", include, "topics.exclude", exclude));
        DefaultConfigPropertyFilter kept = new DefaultConfigPropertyFilter();
        kept.configure(properties);
        Constructor<MirrorSourceConnector> made = MirrorSourceConnector.class.getDeclaredConstructor(
                SourceAndTarget.class, ReplicationPolicy.class, TopicFilter.class, ConfigPropertyFilter.class, boolean.class);
        made.setAccessible(true);
        return made.newInstance(new SourceAndTarget("us", "eu"), policy, topics, kept, heartbeats);
    }

    private static Object call(Object connector, String name, Class<?> type, Object argument) throws Exception {
        Method method = MirrorSourceConnector.class.getDeclaredMethod(name, type);
        method.setAccessible(true);
        return method.invoke(connector, argument);
    }
}
