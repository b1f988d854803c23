// SPDX-License-Identifier: GPL-2.0-only

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.lucene.document.BinaryDocValuesField;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.BinaryDocValues;
import org.apache.lucene.index.CheckIndex;
import org.apache.lucene.index.CodecReader;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.MultiBits;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.store.IOContext;
import org.apache.lucene.store.MMapDirectory;
import org.apache.lucene.store.ReadAdvice;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;

/**
 * Executes operations on a Lucene index, one a line of standard input. A record is a document: its key is a
 * term, and its value a binary doc value, which Lucene does not compress.
 */
public final class Driver {
    private static final String KEY = "key";
    private static final String VALUE = "value";
    private static final int BUFFER_MEGABYTES = 8;
    private static final Logger LOGGER = Logger.getLogger("org.apache.lucene");

    private final Path data;
    private final boolean hinted;
    private MMapDirectory directory;
    private IndexWriter writer;
    private Snapshot snapshot;
    private TermsEnum cursor;

    private Driver(Path data, boolean hinted) {
        this.data = data;
        this.hinted = hinted;
    }

    public static void main(String[] arguments) {
        try {
            if (arguments.length != 2 || !List.of("none", "own").contains(arguments[1])) {
                throw new Failure("usage: lucene DATA-DIRECTORY none|own");
            }
            // Lucene reads this once, when the first of its classes is loaded.
            System.setProperty("org.apache.lucene.store.defaultReadAdvice", "RANDOM");
            // It would have us know that an incubating module makes searches for vectors faster.
            LOGGER.setLevel(Level.SEVERE);
            Driver driver = new Driver(Path.of(arguments[0]), arguments[1].equals("own"));
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                driver.execute(line.split(" "));
            }
            driver.close();
        } catch (Failure failure) {
            System.err.println("lucene: " + failure.getMessage());
            System.exit(1);
        } catch (IOException | RuntimeException failure) {
            System.err.println("lucene: " + failure);
            System.exit(1);
        }
    }

    /** What has its whole explanation in the message. */
    private static final class Failure extends RuntimeException {
        Failure(String message) {
            super(message);
        }
    }

    private void execute(String[] words) throws IOException {
        switch (words[0]) {
            case "create" -> open(IndexWriterConfig.OpenMode.CREATE);
            case "open" -> open(words[1].equals("rw") ? IndexWriterConfig.OpenMode.APPEND : null);
            case "get" -> snapshot().get(number(words, 1));
            case "seek" -> seek(key(number(words, 1)));
            case "first" -> seek(new BytesRef());
            case "last" -> seek(snapshot().terms.getMax());
            case "next" -> next(number(words, 1));
            case "put" -> put(number(words, 1), number(words, 2));
            case "commit" -> commit();
            case "compact" -> compact(path(words));
            case "copy" -> copy(path(words));
            case "check" -> check();
            case "close" -> close();
            default -> throw new Failure("no operation '" + words[0] + "'");
        }
    }

    private static long number(String[] words, int index) {
        if (words.length <= index) {
            throw new Failure("'" + words[0] + "' lacks a number");
        }
        return Long.parseLong(words[index]);
    }

    private static Path path(String[] words) throws IOException {
        return Files.createDirectory(Path.of(words[1]));
    }

    private MMapDirectory mapped(Path path) throws IOException {
        MMapDirectory mapped = new MMapDirectory(path);
        if (!hinted) {
            mapped.setReadAdvice((name, context) -> Optional.of(ReadAdvice.NORMAL));
        }
        return mapped;
    }

    private static IndexWriterConfig configuration(IndexWriterConfig.OpenMode mode) {
        // Merges in other threads would end at other times in each run.
        return new IndexWriterConfig(null)
                .setOpenMode(mode)
                .setMergeScheduler(new SerialMergeScheduler())
                .setRAMBufferSizeMB(BUFFER_MEGABYTES);
    }

    /** With no mode, for reading only. */
    private void open(IndexWriterConfig.OpenMode mode) throws IOException {
        directory = mapped(data);
        if (mode != null) {
            writer = new IndexWriter(directory, configuration(mode));
        }
    }

    private MMapDirectory directory() {
        if (directory == null) {
            throw new Failure("the index is not open");
        }
        return directory;
    }

    private IndexWriter writer() {
        if (writer == null) {
            throw new Failure("the index is not open for writing");
        }
        return writer;
    }

    private Snapshot snapshot() throws IOException {
        if (snapshot == null) {
            snapshot = new Snapshot(DirectoryReader.open(directory()));
        }
        return snapshot;
    }

    private void forget() throws IOException {
        if (snapshot != null) {
            snapshot.reader.close();
        }
        snapshot = null;
        cursor = null;
    }

    private void seek(BytesRef target) throws IOException {
        cursor = snapshot().terms.iterator();
        if (cursor.seekCeil(target) == TermsEnum.SeekStatus.END) {
            throw new Failure("no record with such a key or a larger one");
        }
        snapshot.checkAt(cursor);
    }

    private void next(long count) throws IOException {
        if (cursor == null) {
            throw new Failure("'next' without a cursor");
        }
        for (long left = count; left > 0; left--) {
            if (cursor.next() == null) {
                throw new Failure(left + " records less than there should be");
            }
            snapshot.checkAt(cursor);
        }
    }

    private void put(long key, long version) throws IOException {
        Document document = new Document();
        document.add(new StringField(KEY, key(key), Field.Store.NO));
        document.add(new BinaryDocValuesField(VALUE, Value.of(key, version)));
        writer().updateDocument(new Term(KEY, key(key)), document);
    }

    private void commit() throws IOException {
        writer().commit();
        forget();
    }

    private void compact(Path path) throws IOException {
        List<CodecReader> segments = new ArrayList<>();
        for (LeafReaderContext leaf : snapshot().leaves) {
            segments.add((CodecReader) leaf.reader());
        }
        try (MMapDirectory target = mapped(path);
                IndexWriter compacted =
                        new IndexWriter(target, configuration(IndexWriterConfig.OpenMode.CREATE))) {
            compacted.addIndexes(segments.toArray(new CodecReader[0]));
            compacted.forceMerge(1);
        }
    }

    private void copy(Path path) throws IOException {
        List<String> names = new ArrayList<>(snapshot().reader.getIndexCommit().getFileNames());
        // The file that names all others has to come last.
        names.sort((a, b) -> Boolean.compare(a.startsWith("segments"), b.startsWith("segments")));
        try (MMapDirectory target = mapped(path)) {
            for (String name : names) {
                target.copyFrom(directory(), name, name, IOContext.READONCE);
            }
            target.sync(names);
            target.syncMetaData();
        }
    }

    private void check() throws IOException {
        try (CheckIndex checker = new CheckIndex(directory())) {
            checker.setThreadCount(1);
            if (!checker.checkIndex().clean) {
                throw new Failure("the index is damaged");
            }
        }
    }

    private void close() throws IOException {
        forget();
        if (writer != null) {
            writer.close();
            writer = null;
        }
        if (directory != null) {
            directory.close();
            directory = null;
        }
    }

    private static BytesRef key(long key) {
        return new BytesRef(ByteBuffer.allocate(Long.BYTES).putLong(key).array());
    }

    /** The index as it was when this was made. */
    private static final class Snapshot {
        final DirectoryReader reader;
        final List<LeafReaderContext> leaves;
        /** Of all segments. */
        final Terms terms;

        private final Bits live;
        private final List<TermsEnum> segmentTerms = new ArrayList<>();
        private PostingsEnum postings;

        Snapshot(DirectoryReader reader) throws IOException {
            this.reader = reader;
            leaves = reader.leaves();
            terms = MultiTerms.getTerms(reader, KEY);
            live = MultiBits.getLiveDocs(reader);
            if (terms == null) {
                throw new Failure("the index is empty");
            }
            for (LeafReaderContext leaf : leaves) {
                segmentTerms.add(leaf.reader().terms(KEY).iterator());
            }
        }

        void get(long key) throws IOException {
            BytesRef wanted = key(key);
            for (int i = 0; i < leaves.size(); i++) {
                TermsEnum found = segmentTerms.get(i);
                if (!found.seekExact(wanted)) {
                    continue;
                }
                LeafReader segment = leaves.get(i).reader();
                int document = document(found, segment.getLiveDocs());
                if (document != DocIdSetIterator.NO_MORE_DOCS) {
                    check(segment, document, key);
                    return;
                }
            }
            throw new Failure("no record " + key);
        }

        /** Check the record of the term at which a cursor over all segments stands. */
        void checkAt(TermsEnum cursor) throws IOException {
            BytesRef term = cursor.term();
            long key = ByteBuffer.wrap(term.bytes, term.offset, term.length).getLong();
            int document = document(cursor, live);
            if (document == DocIdSetIterator.NO_MORE_DOCS) {
                throw new Failure("no record " + key);
            }
            LeafReaderContext leaf = leaves.get(ReaderUtil.subIndex(document, leaves));
            check(leaf.reader(), document - leaf.docBase, key);
        }

        /** The document of a term that has not been replaced by another. */
        private int document(TermsEnum term, Bits live) throws IOException {
            postings = term.postings(postings, PostingsEnum.NONE);
            int document = postings.nextDoc();
            while (document != DocIdSetIterator.NO_MORE_DOCS && live != null && !live.get(document)) {
                document = postings.nextDoc();
            }
            return document;
        }

        private void check(LeafReader segment, int document, long key) throws IOException {
            // Doc values are read in the order of documents only: each lookup needs an iterator of its own.
            BinaryDocValues values = segment.getBinaryDocValues(VALUE);
            if (values == null || !values.advanceExact(document)) {
                throw new Failure("record " + key + " has no value");
            }
            Value.check(values.binaryValue(), key);
        }
    }

    /** What records hold; guest/stores/driver.h has the same. */
    private static final class Value {
        private static final int HEAD = 2 * Long.BYTES;

        static BytesRef of(long key, long version) {
            int length = length(key);
            ByteBuffer value = ByteBuffer.allocate(length + Long.BYTES);
            value.putLong(key).putLong(version).order(ByteOrder.LITTLE_ENDIAN);
            for (long i = 0; value.position() < length; i++) {
                value.putLong(mix(mix(key) + version + i));
            }
            return new BytesRef(value.array(), 0, length);
        }

        static void check(BytesRef bytes, long key) {
            ByteBuffer value = ByteBuffer.wrap(bytes.bytes, bytes.offset, bytes.length).slice();
            int length = length(key);
            if (value.limit() != length || value.getLong(0) != key) {
                throw new Failure("the value of record " + key + " is wrong");
            }
            int place = length - 1 - HEAD;
            long word = mix(mix(key) + value.getLong(Long.BYTES) + place / Long.BYTES);
            if (value.get(length - 1) != (byte) (word >>> (place % Long.BYTES * Byte.SIZE))) {
                throw new Failure("the value of record " + key + " ends wrongly");
            }
        }

        private static int length(long key) {
            return (int) (200 + Long.remainderUnsigned(mix(key), 1601));
        }

        private static long mix(long x) {
            x = (x ^ x >>> 30) * 0xbf58476d1ce4e5b9L;
            x = (x ^ x >>> 27) * 0x94d049bb133111ebL;
            return x ^ x >>> 31;
        }
    }
}
