/* The C interface, from C99. Without arguments it checks errors, null and streams by itself; with
   FOLDER it answers c_api_test.py.

   A request is a line, and texts of which each is its size, a newline and its bytes:
     encode COUNT HAS_PAIRS OFFSETS TOKENS THREADS   COUNT texts, and as many second ones
     decode COUNT SKIP ID...                         no texts
     stream COUNT SKIP ID...                         no texts
     threads COUNT THREADS                           COUNT texts, encoded by THREADS threads at once
   An answer is `ok` and numbers on a line, and texts in the same way; or `error STATUS MESSAGE`. */
#define _POSIX_C_SOURCE 200809L
#include "posenc/tokenizers/c_api.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void check(int holds, int line, const char* what) {
  if (holds) return;
  printf("line %d: %s: %s\n", line, what, posenc_last_error());
  ++failures;
}
#define CHECK(holds) check(holds, __LINE__, #holds)

static int says(const char* part) { return strstr(posenc_last_error(), part) != NULL; }

static posenc_text text_of(const char* bytes) {
  posenc_text text;
  text.bytes = bytes;
  text.size = strlen(bytes);
  return text;
}

static const char* const kWords =
    "{\"version\": \"1.0\", \"padding\": {\"strategy\": \"BatchLongest\", \"direction\": \"Right\", "
    "\"pad_id\": 0, \"pad_type_id\": 0, \"pad_token\": \"[PAD]\", \"pad_to_multiple_of\": null}, "
    "\"truncation\": null, \"added_tokens\": [], \"normalizer\": null, "
    "\"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, \"decoder\": null, \"post_processor\": "
    "{\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 3], \"cls\": [\"[CLS]\", 2]}, \"model\": "
    "{\"type\": \"WordLevel\", \"unk_token\": \"[UNK]\", \"vocab\": {\"[PAD]\": 0, \"[UNK]\": 1, "
    "\"[CLS]\": 2, \"[SEP]\": 3, \"a\": 4, \"b\": 5, \"\xef\xbf\xbd\": 6}}}";

static posenc_tokenizer* words(void) {
  posenc_tokenizer* tokenizer = NULL;
  posenc_file file;
  file.name = "tokenizer.json";
  file.content = text_of(kWords);
  CHECK(posenc_tokenizer_from_memory(&file, 1, &tokenizer) == POSENC_OK);
  return tokenizer;
}

static void check_results(void) {
  posenc_tokenizer* tokenizer = words();
  posenc_encoding* encoding = NULL;
  posenc_stream* stream = NULL;
  posenc_encode_options options;
  posenc_text texts[2], pairs[2], piece;
  const int64_t ids[] = {4, 5};
  char* text = NULL;
  size_t size = 0;
  texts[0] = text_of("a b");
  texts[1] = text_of("b");
  pairs[0] = text_of("b a");
  pairs[1].bytes = NULL; /* an empty text */
  pairs[1].size = 0;
  posenc_encode_options_init(&options, sizeof options);
  options.offsets = options.tokens = 1;
  options.padding_side = POSENC_LEFT;
  CHECK(posenc_encode(tokenizer, texts, pairs, 2, &options, &encoding) == POSENC_OK);
  CHECK(posenc_encoding_rows(encoding) == 2 && posenc_encoding_columns(encoding) == 7);
  CHECK(posenc_encoding_ids(encoding)[1] == 4 && posenc_encoding_ids(encoding)[7] == 0);
  CHECK(posenc_encoding_mask(encoding)[0] == 1 && posenc_encoding_mask(encoding)[7] == 0);
  CHECK(posenc_encoding_type_ids(encoding)[6] == 1 && posenc_encoding_type_ids(encoding)[0] == 0);
  CHECK(posenc_encoding_special_mask(encoding)[0] == 1);
  CHECK(posenc_encoding_special_mask(encoding)[1] == 0);
  CHECK(posenc_encoding_special_mask(encoding)[7] == 1);
  CHECK(posenc_encoding_row_texts(encoding)[1] == 1);
  CHECK(posenc_encoding_offsets(encoding)[4] == 2 && posenc_encoding_offsets(encoding)[5] == 3);
  piece = posenc_encoding_token(encoding, 0, 1);
  CHECK(piece.size == 1 && piece.bytes[0] == 'a');
  CHECK(strcmp(posenc_encoding_token(encoding, 1, 0).bytes, "[PAD]") == 0);
  CHECK(posenc_encoding_token(encoding, 2, 0).bytes == NULL);
  CHECK(posenc_encoding_token(encoding, 0, 7).size == 0);
  posenc_encoding_free(encoding);
  CHECK(posenc_encode(tokenizer, texts, NULL, 2, NULL, &encoding) == POSENC_OK);
  CHECK(posenc_encoding_offsets(encoding) == NULL);
  CHECK(posenc_encoding_token(encoding, 0, 0).bytes == NULL);
  posenc_encoding_free(encoding);

  CHECK(posenc_decode(tokenizer, ids, 2, 1, &text, &size) == POSENC_OK);
  CHECK(size == 3 && strcmp(text, "a b") == 0);
  posenc_text_free(text);
  CHECK(posenc_decode(tokenizer, NULL, 0, 1, &text, NULL) == POSENC_OK);
  CHECK(text[0] == 0);
  posenc_text_free(text);
  CHECK(posenc_token_to_id(tokenizer, text_of("b")) == 5);
  CHECK(posenc_token_to_id(tokenizer, text_of("c")) == -1);
  CHECK(posenc_special_token_id(tokenizer, "mask_token") == -1);
  CHECK(posenc_id_to_token(tokenizer, 2, &text, &size) == POSENC_OK);
  CHECK(size == 5 && strcmp(text, "[CLS]") == 0);
  posenc_text_free(text);
  CHECK(posenc_vocab_size(tokenizer) == 7);
  CHECK(posenc_model_max_length(tokenizer) == -1);
  CHECK(posenc_tokenizers_abi() == 1);

  CHECK(posenc_stream_new(tokenizer, 1, &stream) == POSENC_OK);
  posenc_tokenizer_free(tokenizer); /* which the stream holds */
  CHECK(posenc_stream_step(stream, 4, &piece) == POSENC_OK);
  CHECK(piece.size == 1 && piece.bytes[0] == 'a');
  CHECK(posenc_stream_step(stream, 6, &piece) == POSENC_OK && piece.size == 0);
  CHECK(posenc_stream_end(stream, &piece) == POSENC_OK);
  CHECK(piece.size == 4 && strcmp(piece.bytes, " \xef\xbf\xbd") == 0);
  posenc_stream_free(stream);
}

/* Each status once, but POSENC_INTERNAL, which is a fault of posenc. */
static void check_errors(void) {
  posenc_tokenizer *tokenizer = words(), *none = NULL;
  posenc_encoding* encoding = NULL;
  posenc_encode_options options;
  posenc_file file;
  posenc_text text = text_of("a"), bad = text_of("\xff");
  char* long_text;
  char* out = NULL;
  struct {
    posenc_encode_options known;
    int64_t more[4];
  } future;

  CHECK(posenc_encode(tokenizer, &bad, NULL, 1, NULL, &encoding) == POSENC_ARGUMENT);
  CHECK(says("text 0: must be UTF-8. Got another byte at 0"));
  CHECK(posenc_tokenizer_from_folder("no such folder!", &none) == POSENC_FILE);
  CHECK(says("no such folder!"));
  CHECK(posenc_tokenizer_from_file("missing.json", &none) == POSENC_FILE);
  CHECK(says("missing.json"));
  file.name = "tokenizer.json";
  file.content = text_of("{\"model\": 7}");
  CHECK(posenc_tokenizer_from_memory(&file, 1, &none) == POSENC_FORMAT);
  CHECK(says("[Tokenizer::from_memory] tokenizer.json: "));
  /* Settings that are nested too deeply. */
  long_text = malloc(201);
  memset(long_text, '[', 200);
  long_text[200] = 0;
  {
    posenc_file files[2];
    files[0].name = "tokenizer.json";
    files[0].content = text_of(kWords);
    files[1].name = "tokenizer_config.json";
    files[1].content = text_of(long_text);
    CHECK(posenc_tokenizer_from_memory(files, 2, &none) == POSENC_LIMIT);
    CHECK(says("tokenizer_config.json: must nest its settings no deeper than 64"));
  }
  free(long_text);
  /* No memory holds the list of so many texts, which are not read. */
  CHECK(posenc_encode(tokenizer, &text, NULL, SIZE_MAX, NULL, &encoding) == POSENC_MEMORY);
  CHECK(strcmp(posenc_last_error(), "out of memory") == 0);
  {
    /* Nor a batch of which rows times columns is more than 2^64, by 4 and by 0; nor so many ids. */
    const posenc_text five[] = {text, text, text, text, text};
    const int64_t id = 4;
    posenc_encode_options_init(&options, sizeof options);
    options.padding = POSENC_PAD_LENGTH;
    options.max_length = INT64_C(3689348814741910324);
    CHECK(posenc_encode(tokenizer, five, NULL, 5, &options, &encoding) == POSENC_MEMORY);
    options.padding = POSENC_PAD_LONGEST;
    options.pad_to_multiple_of = INT64_C(1) << 62;
    CHECK(posenc_encode(tokenizer, five, NULL, 4, &options, &encoding) == POSENC_MEMORY);
    CHECK(posenc_decode(tokenizer, &id, (size_t)1 << 61, 1, &out, NULL) == POSENC_MEMORY);
    CHECK(out == NULL);
  }
  CHECK(none == NULL && encoding == NULL);

  memset(&future, 1, sizeof future);
  posenc_encode_options_init(&future.known, sizeof future);
  CHECK(future.known.size == sizeof future && future.more[0] == 0x0101010101010101);
  CHECK(posenc_encode(tokenizer, &text, NULL, 1, &future.known, &encoding) == POSENC_ARGUMENT);
  CHECK(says("`options` must be a struct of 72 bytes") && says("Got 104"));
  posenc_encode_options_init(&options, sizeof options);
  options.size = 8;
  CHECK(posenc_encode(tokenizer, &text, NULL, 1, &options, &encoding) == POSENC_ARGUMENT);
  posenc_encode_options_init(&options, sizeof options);
  options.padding = 3;
  CHECK(posenc_encode(tokenizer, &text, NULL, 1, &options, &encoding) == POSENC_ARGUMENT);
  CHECK(says("[posenc_encode] `padding` must be from -1 to 2. Got 3"));
  posenc_encode_options_init(&options, sizeof options);
  options.threads = 0;
  CHECK(posenc_encode(tokenizer, &text, NULL, 1, &options, &encoding) == POSENC_ARGUMENT);
  CHECK(says("`threads` must be -1 or at least 1. Got 0"));
  CHECK(posenc_encode(tokenizer, NULL, NULL, 0, NULL, &encoding) == POSENC_ARGUMENT);
  CHECK(says("at least one text"));
  CHECK(posenc_id_to_token(tokenizer, 99, &out, NULL) == POSENC_ARGUMENT && out == NULL);
  posenc_tokenizer_free(tokenizer);
}

static void check_null(void) {
  posenc_tokenizer *tokenizer = words(), *none = NULL;
  posenc_encoding* encoding = NULL;
  posenc_stream* stream = NULL;
  posenc_file file;
  posenc_text text = text_of("a"), missing;
  char* out = NULL;
  const int64_t id = 4;
  missing.bytes = NULL;
  missing.size = 1;
  CHECK(posenc_tokenizer_from_folder(NULL, &none) == POSENC_ARGUMENT);
  CHECK(says("[posenc_tokenizer_from_folder] `path` must not be null"));
  CHECK(posenc_tokenizer_from_folder("x", NULL) == POSENC_ARGUMENT);
  CHECK(posenc_tokenizer_from_file(NULL, &none) == POSENC_ARGUMENT);
  CHECK(posenc_tokenizer_from_file("x", NULL) == POSENC_ARGUMENT);
  CHECK(posenc_tokenizer_from_memory(NULL, 1, &none) == POSENC_ARGUMENT);
  CHECK(posenc_tokenizer_from_memory(NULL, 0, &none) == POSENC_ARGUMENT);
  file.name = NULL;
  file.content = text;
  CHECK(posenc_tokenizer_from_memory(&file, 1, &none) == POSENC_ARGUMENT);
  file.name = "tokenizer.json";
  file.content = missing;
  CHECK(posenc_tokenizer_from_memory(&file, 1, &none) == POSENC_ARGUMENT);
  CHECK(posenc_encode(NULL, &text, NULL, 1, NULL, &encoding) == POSENC_ARGUMENT);
  CHECK(says("[posenc_encode] `tokenizer` must not be null"));
  CHECK(posenc_encode(tokenizer, NULL, NULL, 1, NULL, &encoding) == POSENC_ARGUMENT);
  CHECK(posenc_encode(tokenizer, &missing, NULL, 1, NULL, &encoding) == POSENC_ARGUMENT);
  CHECK(posenc_encode(tokenizer, &text, &missing, 1, NULL, &encoding) == POSENC_ARGUMENT);
  CHECK(posenc_encode(tokenizer, &text, NULL, 1, NULL, NULL) == POSENC_ARGUMENT);
  CHECK(posenc_decode(NULL, &id, 1, 1, &out, NULL) == POSENC_ARGUMENT);
  CHECK(posenc_decode(tokenizer, NULL, 1, 1, &out, NULL) == POSENC_ARGUMENT);
  CHECK(posenc_decode(tokenizer, &id, 1, 1, NULL, NULL) == POSENC_ARGUMENT);
  CHECK(posenc_stream_new(NULL, 1, &stream) == POSENC_ARGUMENT);
  CHECK(posenc_stream_new(tokenizer, 1, NULL) == POSENC_ARGUMENT);
  CHECK(posenc_stream_step(NULL, 1, &text) == POSENC_ARGUMENT);
  CHECK(posenc_stream_end(NULL, &text) == POSENC_ARGUMENT);
  CHECK(posenc_id_to_token(NULL, 1, &out, NULL) == POSENC_ARGUMENT);
  CHECK(none == NULL && encoding == NULL && stream == NULL && out == NULL);
  CHECK(posenc_encoding_rows(NULL) == 0 && posenc_encoding_columns(NULL) == 0);
  CHECK(posenc_encoding_ids(NULL) == NULL && posenc_encoding_mask(NULL) == NULL);
  CHECK(posenc_encoding_type_ids(NULL) == NULL && posenc_encoding_special_mask(NULL) == NULL);
  CHECK(posenc_encoding_row_texts(NULL) == NULL && posenc_encoding_offsets(NULL) == NULL);
  CHECK(posenc_encoding_token(NULL, 0, 0).bytes == NULL);
  CHECK(posenc_token_to_id(NULL, text) == -1 && posenc_token_to_id(tokenizer, missing) == -1);
  CHECK(posenc_special_token_id(NULL, "x") == -1);
  CHECK(posenc_special_token_id(tokenizer, NULL) == -1);
  CHECK(posenc_vocab_size(NULL) == -1 && posenc_model_max_length(NULL) == -1);
  posenc_encode_options_init(NULL, 8);
  posenc_tokenizer_free(NULL);
  posenc_encoding_free(NULL);
  posenc_stream_free(NULL);
  posenc_text_free(NULL);
  posenc_tokenizer_free(tokenizer);
}

/* The texts of a request. */
static posenc_text* read_texts(size_t count) {
  posenc_text* texts = malloc((count + 1) * sizeof *texts);
  size_t i;
  for (i = 0; i < count; ++i) {
    unsigned long size = 0;
    char* bytes;
    if (scanf("%lu", &size) != 1 || getchar() != '\n') abort();
    bytes = malloc(size + 1);
    if (fread(bytes, 1, size, stdin) != size) abort();
    texts[i].bytes = bytes;
    texts[i].size = size;
  }
  return texts;
}

static void free_texts(posenc_text* texts, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i) free((char*)texts[i].bytes);
  free(texts);
}

static void print_text(posenc_text text) {
  printf("%lu\n", (unsigned long)text.size);
  if (text.size > 0) fwrite(text.bytes, 1, text.size, stdout);
}

static void print_numbers(const int64_t* numbers, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i) printf(" %lld", (long long)numbers[i]);
}

static void print_error(posenc_status status) {
  printf("error %d %s\n", (int)status, posenc_last_error());
}

static void answer_encode(const posenc_tokenizer* tokenizer) {
  unsigned long count;
  int has_pairs, offsets, tokens, threads;
  posenc_text *texts, *pairs;
  posenc_encode_options options;
  posenc_encoding* encoding = NULL;
  posenc_status status;
  if (scanf("%lu %d %d %d %d", &count, &has_pairs, &offsets, &tokens, &threads) != 5) abort();
  texts = read_texts(count);
  pairs = has_pairs ? read_texts(count) : NULL;
  posenc_encode_options_init(&options, sizeof options);
  options.offsets = offsets;
  options.tokens = tokens;
  options.threads = threads;
  status = posenc_encode(tokenizer, texts, pairs, count, &options, &encoding);
  if (status != POSENC_OK) {
    print_error(status);
  } else {
    const size_t rows = posenc_encoding_rows(encoding), columns = posenc_encoding_columns(encoding);
    size_t row, column;
    printf("ok %lu %lu", (unsigned long)rows, (unsigned long)columns);
    print_numbers(posenc_encoding_ids(encoding), rows * columns);
    print_numbers(posenc_encoding_mask(encoding), rows * columns);
    print_numbers(posenc_encoding_type_ids(encoding), rows * columns);
    print_numbers(posenc_encoding_special_mask(encoding), rows * columns);
    if (offsets) print_numbers(posenc_encoding_offsets(encoding), 2 * rows * columns);
    printf("\n");
    for (row = 0; tokens && row < rows; ++row)
      for (column = 0; column < columns; ++column)
        print_text(posenc_encoding_token(encoding, row, column));
  }
  posenc_encoding_free(encoding);
  free_texts(texts, count);
  if (pairs != NULL) free_texts(pairs, count);
}

static int64_t* read_ids(unsigned long* count, int* skip) {
  int64_t* ids;
  unsigned long i;
  if (scanf("%lu %d", count, skip) != 2) abort();
  ids = malloc((*count + 1) * sizeof *ids);
  for (i = 0; i < *count; ++i) {
    long long id;
    if (scanf("%lld", &id) != 1) abort();
    ids[i] = id;
  }
  return ids;
}

static void answer_decode(const posenc_tokenizer* tokenizer) {
  unsigned long count;
  int skip;
  int64_t* ids = read_ids(&count, &skip);
  posenc_text text;
  char* bytes = NULL;
  const posenc_status status = posenc_decode(tokenizer, ids, count, skip, &bytes, &text.size);
  if (status != POSENC_OK) {
    print_error(status);
  } else {
    text.bytes = bytes;
    printf("ok\n");
    print_text(text);
  }
  posenc_text_free(bytes);
  free(ids);
}

static void answer_stream(const posenc_tokenizer* tokenizer) {
  unsigned long count, i;
  int skip;
  int64_t* ids = read_ids(&count, &skip);
  posenc_stream* stream = NULL;
  posenc_text piece;
  posenc_status status = posenc_stream_new(tokenizer, skip, &stream);
  char* all = NULL;
  size_t size = 0;
  for (i = 0; status == POSENC_OK && i <= count; ++i) {
    status = i < count ? posenc_stream_step(stream, ids[i], &piece)
                       : posenc_stream_end(stream, &piece);
    if (status != POSENC_OK) break;
    all = realloc(all, size + piece.size + 1);
    memcpy(all + size, piece.bytes, piece.size);
    size += piece.size;
  }
  if (status != POSENC_OK) {
    print_error(status);
  } else {
    piece.bytes = all;
    piece.size = size;
    printf("ok\n");
    print_text(piece);
  }
  free(all);
  posenc_stream_free(stream);
  free(ids);
}

/* What a thread encodes, and whether it found what the first one did. */
struct work {
  const posenc_tokenizer* tokenizer;
  const posenc_text* texts;
  size_t count;
  const posenc_encoding* expected;
  int is_equal;
};

static void* encode_again(void* given) {
  struct work* work = given;
  size_t i, at = 0;
  int round;
  work->is_equal = 1;
  for (round = 0; round < 3; ++round) {
    const size_t columns = posenc_encoding_columns(work->expected);
    posenc_encoding* all = NULL;
    if (posenc_encode(work->tokenizer, work->texts, NULL, work->count, NULL, &all) != POSENC_OK ||
        posenc_encoding_columns(all) != columns ||
        memcmp(posenc_encoding_ids(all), posenc_encoding_ids(work->expected),
               work->count * columns * sizeof(int64_t)) != 0)
      work->is_equal = 0;
    posenc_encoding_free(all);
    for (i = 0; i < work->count; ++i) {
      posenc_text text = work->texts[i];
      posenc_text bad = text_of("\xff");
      posenc_encoding* one = NULL;
      if (posenc_encode(work->tokenizer, &text, NULL, 1, NULL, &one) != POSENC_OK ||
          posenc_encoding_columns(one) > columns)
        work->is_equal = 0;
      for (at = 0; one != NULL && at < posenc_encoding_columns(one); ++at) {
        /* padded at one of its ends */
        const size_t missing = columns - posenc_encoding_columns(one);
        const size_t begin = posenc_encoding_mask(work->expected)[i * columns] == 0 ? missing : 0;
        if (posenc_encoding_ids(one)[at] !=
            posenc_encoding_ids(work->expected)[i * columns + begin + at])
          work->is_equal = 0;
      }
      posenc_encoding_free(one);
      if (posenc_encode(work->tokenizer, &bad, NULL, 1, NULL, &one) != POSENC_ARGUMENT ||
          !says("must be UTF-8"))
        work->is_equal = 0;
    }
  }
  return NULL;
}

static void answer_threads(const posenc_tokenizer* tokenizer) {
  enum { kMost = 64 };
  unsigned long count;
  int threads, i, equal = 0;
  posenc_text* texts;
  posenc_encoding* expected = NULL;
  pthread_t started[kMost];
  struct work work[kMost];
  posenc_status status;
  if (scanf("%lu %d", &count, &threads) != 2 || threads > kMost) abort();
  texts = read_texts(count);
  status = posenc_encode(tokenizer, texts, NULL, count, NULL, &expected);
  if (status != POSENC_OK) {
    print_error(status);
  } else {
    for (i = 0; i < threads; ++i) {
      work[i].tokenizer = tokenizer;
      work[i].texts = texts;
      work[i].count = count;
      work[i].expected = expected;
      if (pthread_create(&started[i], NULL, encode_again, &work[i]) != 0) abort();
    }
    for (i = 0; i < threads; ++i) {
      pthread_join(started[i], NULL);
      equal += work[i].is_equal;
    }
    printf("ok %d\n", equal);
  }
  posenc_encoding_free(expected);
  free_texts(texts, count);
}

int main(int count, char** arguments) {
  posenc_tokenizer* tokenizer = NULL;
  char request[16];
  posenc_status status;
  if (count == 1) {
    check_results();
    check_errors();
    check_null();
    return failures != 0;
  }
  status = posenc_tokenizer_from_folder(arguments[1], &tokenizer);
  if (status != POSENC_OK) {
    print_error(status);
    return 1;
  }
  printf("ok %lld\n", (long long)posenc_vocab_size(tokenizer));
  fflush(stdout);
  while (scanf("%15s", request) == 1) {
    if (strcmp(request, "encode") == 0) answer_encode(tokenizer);
    if (strcmp(request, "decode") == 0) answer_decode(tokenizer);
    if (strcmp(request, "stream") == 0) answer_stream(tokenizer);
    if (strcmp(request, "threads") == 0) answer_threads(tokenizer);
    fflush(stdout);
  }
  posenc_tokenizer_free(tokenizer);
  return 0;
}
