import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.TreeMap;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

/** Reads JAAS lines, base64, one a line, and prints module and options as Kafka has them, or `refused`. */
public class JaasOracle {
    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            System.out.println(read(new String(Base64.getDecoder().decode(lines.nextLine()), java.nio.charset.StandardCharsets.UTF_8)));
        }
    }

    private static String read(String text) {
        try {
            JaasContext context = JaasContext.loadClientContext(Map.of(SaslConfigs.SASL_JAAS_CONFIG, new Password(text)));
            List<AppConfigurationEntry> entries = context.configurationEntries();
            StringBuilder said = new StringBuilder(encode(entries.get(0).getLoginModuleName()));
            for (Map.Entry<String, ?> option : new TreeMap<>(entries.get(0).getOptions()).entrySet()) {
                said.append(' ').append(encode(option.getKey())).append(' ').append(encode((String) option.getValue()));
            }
            return said.toString();
        } catch (RuntimeException error) {
            return "refused";
        }
    }

    private static String encode(String text) {
        return "=" + Base64.getEncoder().encodeToString(text.getBytes(java.nio.charset.StandardCharsets.UTF_8));
    }
}
