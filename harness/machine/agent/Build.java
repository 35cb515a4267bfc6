import java.io.File;

import org.codehaus.janino.Compiler;

/** Compiles one file: source, folder of the classes, class path. */
public class Build {
    public static void main(String[] words) throws Exception {
        String[] names = words[2].split(File.pathSeparator);
        File[] jars = new File[names.length];
        for (int at = 0; at < names.length; at++) {
            jars[at] = new File(names[at]);
        }
        Compiler compiler = new Compiler();
        compiler.setDestinationDirectory(new File(words[1]), false);
        compiler.setClassPath(jars);
        compiler.compile(new File[] {new File(words[0])});
    }
}
