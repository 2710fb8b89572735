import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.clients.ClientDnsLookup;
import org.apache.kafka.clients.ClientUtils;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.utils.Utils;

/** What Kafka reads in a text: lines of a kind and the text in hexadecimal Latin-1, answered by what it read, or error. */
public class GrammarOracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ", -1);
            byte[] bytes = HexFormat.of().parseHex(parts[1]);
            try {
                System.out.println("answer " + read(parts[0], bytes));
            } catch (RuntimeException error) {
                System.out.println("answer error");
            }
        }
    }

    private static String read(String kind, byte[] bytes) throws Exception {
        String text = new String(bytes, "ISO-8859-1");
        switch (kind) {
            case "broker":
                ClientUtils.parseAndValidateAddresses(List.of(text), ClientDnsLookup.USE_ALL_DNS_IPS);
                return Utils.getHost(text) + " " + Utils.getPort(text);
            case "flag":
                return String.valueOf(Boolean.parseBoolean(text));
            case "keys":
                Properties properties = new Properties();
                properties.load(new ByteArrayInputStream(bytes));
                return HexFormat.of().formatHex(properties.toString().getBytes("ISO-8859-1"));
            default:
                ConfigDef.Type type = ConfigDef.Type.valueOf(kind);
                return String.valueOf(ConfigDef.parseType("key", text, type));
        }
    }
}
