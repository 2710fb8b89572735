import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.regex.Pattern;

/** Whether each text matches each expression: a line of both in hexadecimal UTF-16, answered by true, false or error. */
public class RegexOracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ", -1);
            String answer;
            try {
                answer = String.valueOf(Pattern.matches(text(parts[0]), text(parts[1])));
            } catch (RuntimeException error) {
                answer = "error";
            }
            System.out.println(answer);
        }
    }

    private static String text(String hexadecimal) {
        StringBuilder text = new StringBuilder();
        for (int at = 0; at < hexadecimal.length(); at += 4)
            text.append((char) Integer.parseInt(hexadecimal.substring(at, at + 4), 16));
        return text.toString();
    }
}
