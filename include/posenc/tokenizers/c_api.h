#pragma once

// posenc-budget: one interface, read as a whole

/// @file
/// Tokenizers for C (C99) and for languages that call C. No exception leaves a function, none knows
/// LibTorch, and all types are those of C, handles, and structs that begin with their size.
///
/// A function that may fail returns a posenc_status, writes its results only with POSENC_OK, and
/// explains every other status in posenc_last_error(). Null where a handle or a result belongs is
/// POSENC_ARGUMENT; functions that cannot fail return 0, -1 or null for it.
///
/// ```c
/// posenc_tokenizer* tokenizer = NULL;
/// posenc_encoding* encoding = NULL;
/// posenc_text text = {"Hello world", 11};
/// if (posenc_tokenizer_from_folder("models/bert-base-uncased", &tokenizer) != POSENC_OK ||
///     posenc_encode(tokenizer, &text, NULL, 1, NULL, &encoding) != POSENC_OK) {
///   fprintf(stderr, "%s\n", posenc_last_error());
/// } else {
///   printf("%lld\n", (long long)posenc_encoding_ids(encoding)[0]);
/// }
/// posenc_encoding_free(encoding);
/// posenc_tokenizer_free(tokenizer);
/// ```

#include <stddef.h>
#include <stdint.h>

#include "posenc/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A tokenizer. Immutable: any number of threads may use one.
typedef struct posenc_tokenizer posenc_tokenizer;
/// The rows of one call of posenc_encode(). Immutable.
typedef struct posenc_encoding posenc_encoding;
/// Decodes ids that come one by one, for one thread at a time. It holds its tokenizer.
typedef struct posenc_stream posenc_stream;

/// 0, or one of:
typedef int32_t posenc_status;
/// Further ones may be added.
enum {
  POSENC_OK,        ///< done
  POSENC_ARGUMENT,  ///< an argument breaks a rule: null, not UTF-8, out of range
  POSENC_FILE,      ///< the system cannot read a file, or there is none
  POSENC_FORMAT,    ///< a file violates its format, or has a part that posenc lacks
  POSENC_LIMIT,     ///< a file or a search is beyond a limit
  POSENC_MEMORY,    ///< there is not enough memory
  POSENC_INTERNAL   ///< anything else: a fault of posenc
};

/// Values of posenc_encode_options::padding: what rows are padded to.
enum {
  POSENC_PAD_NONE,     ///< not at all: rows must have one length
  POSENC_PAD_LONGEST,  ///< the longest row
  POSENC_PAD_LENGTH    ///< max_length
};
/// Values of posenc_encode_options::truncation: what is cut off a row longer than max_length.
enum {
  POSENC_CUT_NONE,           ///< nothing
  POSENC_CUT_LONGEST_FIRST,  ///< of a pair the longer text, down to the length of the other
  POSENC_CUT_FIRST,          ///< the first text
  POSENC_CUT_SECOND          ///< the second text
};
/// Values of posenc_encode_options::padding_side and truncation_side.
enum { POSENC_LEFT, POSENC_RIGHT };

/// A text in UTF-8, which may contain NUL; `bytes` may be null if `size` is 0.
typedef struct {
  const char* bytes;  ///< its first byte
  size_t size;        ///< how many it has
} posenc_text;

/// A file in memory.
typedef struct {
  const char* name;     ///< its name in the folder, such as "vocab.txt"
  posenc_text content;  ///< what it contains
} posenc_file;

/// How posenc_encode() makes rows. Each field is -1 for what the folder or file says, and otherwise
/// 0 or 1 unless something else is said.
typedef struct {
  size_t size;                 ///< of this struct, set by posenc_encode_options_init()
  int32_t add_special_tokens;  ///< adds those that the model expects, such as `[CLS]`; by default 1
  int32_t padding;             ///< POSENC_PAD_...; by default POSENC_PAD_LONGEST
  int32_t truncation;          ///< POSENC_CUT_...; by default POSENC_CUT_NONE
  int32_t padding_side;        ///< POSENC_LEFT or POSENC_RIGHT
  int32_t truncation_side;     ///< POSENC_LEFT or POSENC_RIGHT
  int32_t overflow;            ///< returns what is cut off as further rows; by default 0
  int32_t target;              ///< encodes texts of a translation model's target language
  int32_t offsets;             ///< posenc_encoding_offsets(); by default 0, which is faster
  int32_t tokens;              ///< posenc_encoding_token(); by default 0, which is faster
  int32_t threads;             ///< most threads for more than 64 texts, from 1; by default all
  int64_t max_length;          ///< most tokens of a row, special ones included
  int64_t pad_to_multiple_of;  ///< makes the padded length a multiple of this, from 1
  int64_t stride;              ///< tokens that an overflowing row repeats of the row before it
} posenc_encode_options;

/// The version of this interface: 1. Functions, enumerators and fields at the end of structs are
/// only ever added.
POSENC_EXPORT int32_t posenc_tokenizers_abi(void);
/// Why the last call of this thread that failed did so, on one line as a rule: never null, and
/// valid until the next that fails.
POSENC_EXPORT const char* posenc_last_error(void);

/// The tokenizer of a model's folder, as transformers' AutoTokenizer makes it.
POSENC_EXPORT posenc_status posenc_tokenizer_from_folder(const char* path, posenc_tokenizer** out);
/// The tokenizer that a tokenizer.json describes, as the package `tokenizers` makes it.
POSENC_EXPORT posenc_status posenc_tokenizer_from_file(const char* path, posenc_tokenizer** out);
/// The same of `count` files in memory: a folder's, or one tokenizer.json. They are copied.
POSENC_EXPORT posenc_status posenc_tokenizer_from_memory(const posenc_file* files, size_t count,
                                                         posenc_tokenizer** out);
/// Ends the use of a tokenizer, if it is not null. Its streams and encodings stay.
POSENC_EXPORT void posenc_tokenizer_free(posenc_tokenizer* tokenizer);

/// Sets the struct's size and every field to -1. `size` is `sizeof(posenc_encode_options)` where
/// the program was compiled.
POSENC_EXPORT void posenc_encode_options_init(posenc_encode_options* options, size_t size);
/// Encodes `count` texts, or pairs of texts unless `pairs` is null; an empty second text is a pair
/// too. Null `options` are those of the folder. A struct of options that is larger than that of
/// this library is POSENC_ARGUMENT.
POSENC_EXPORT posenc_status posenc_encode(const posenc_tokenizer* tokenizer,
                                          const posenc_text* texts, const posenc_text* pairs,
                                          size_t count, const posenc_encode_options* options,
                                          posenc_encoding** out);
/// Number of rows.
POSENC_EXPORT size_t posenc_encoding_rows(const posenc_encoding* encoding);
/// Number of tokens of each row, padding included.
POSENC_EXPORT size_t posenc_encoding_columns(const posenc_encoding* encoding);
/// The ids (rows, columns).
POSENC_EXPORT const int64_t* posenc_encoding_ids(const posenc_encoding* encoding);
/// 1 for tokens and 0 for padding (rows, columns).
POSENC_EXPORT const int64_t* posenc_encoding_mask(const posenc_encoding* encoding);
/// 1 for the second text, or what the template says (rows, columns); 0 if the model takes none.
POSENC_EXPORT const int64_t* posenc_encoding_type_ids(const posenc_encoding* encoding);
/// 1 for tokens that the template adds, and for padding (rows, columns).
POSENC_EXPORT const int64_t* posenc_encoding_special_mask(const posenc_encoding* encoding);
/// The index of the text that each row is of (rows).
POSENC_EXPORT const int64_t* posenc_encoding_row_texts(const posenc_encoding* encoding);
/// Begin and end of each token in its text, in characters (rows, columns, 2); null if not asked
/// for.
POSENC_EXPORT const int64_t* posenc_encoding_offsets(const posenc_encoding* encoding);
/// How the tokenizer spells a token; of null and 0 bytes for an index outside, and if tokens were
/// not asked for. Valid as long as the encoding.
POSENC_EXPORT posenc_text posenc_encoding_token(const posenc_encoding* encoding, size_t row,
                                                size_t column);
/// Ends the use of an encoding, if it is not null.
POSENC_EXPORT void posenc_encoding_free(posenc_encoding* encoding);

/// The text of ids, which ends with a NUL that `size` does not count; for posenc_text_free().
/// `size` may be null.
POSENC_EXPORT posenc_status posenc_decode(const posenc_tokenizer* tokenizer, const int64_t* ids,
                                          size_t count, int32_t skip_special_tokens, char** text,
                                          size_t* size);
/// Frees a text that a function has returned, if it is not null.
POSENC_EXPORT void posenc_text_free(char* text);

/// A stream at the beginning of a text.
POSENC_EXPORT posenc_status posenc_stream_new(const posenc_tokenizer* tokenizer,
                                              int32_t skip_special_tokens, posenc_stream** out);
/// Adds an id. `out` is the text that is complete with it, of size 0 while a character is
/// incomplete; it is the stream's, valid until its next call.
POSENC_EXPORT posenc_status posenc_stream_step(posenc_stream* stream, int64_t id, posenc_text* out);
/// The rest of the text once all ids have been given, such as of an incomplete character; begins a
/// new text.
POSENC_EXPORT posenc_status posenc_stream_end(posenc_stream* stream, posenc_text* out);
/// Ends the use of a stream, if it is not null.
POSENC_EXPORT void posenc_stream_free(posenc_stream* stream);

/// The id of a token; -1: there is none.
POSENC_EXPORT int64_t posenc_token_to_id(const posenc_tokenizer* tokenizer, posenc_text token);
/// The id of a named special token of the folder, such as "mask_token"; -1: it has none.
POSENC_EXPORT int64_t posenc_special_token_id(const posenc_tokenizer* tokenizer, const char* name);
/// The token of an id, as posenc_decode() gives a text; POSENC_ARGUMENT if there is none.
POSENC_EXPORT posenc_status posenc_id_to_token(const posenc_tokenizer* tokenizer, int64_t id,
                                               char** text, size_t* size);
/// Number of tokens, added ones included; -1 for null.
POSENC_EXPORT int64_t posenc_vocab_size(const posenc_tokenizer* tokenizer);
/// The folder's `model_max_length`; -1: it has none.
POSENC_EXPORT int64_t posenc_model_max_length(const posenc_tokenizer* tokenizer);

#ifdef __cplusplus
}
#endif
