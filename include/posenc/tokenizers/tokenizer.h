#pragma once

// posenc-budget: one class and its stream, a comment a function

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/export.h"
#include "posenc/tokenizers/encoded_batch.h"
#include "posenc/tokenizers/tokenizer_options.h"

namespace posenc::text {
class LoadedTokenizer;  // private
class StreamState;
struct BatchRequest;
}  // namespace posenc::text

namespace posenc POSENC_EXPORT {

/// The tokens of one text or pair, without padding.
struct Encoding {
  std::vector<int64_t> ids;         ///< the ids
  std::vector<std::string> tokens;  ///< the tokens as the tokenizer spells them
  std::vector<int64_t> type_ids;    ///< 0, or 1 for the second text
  /// Begin and end in characters of the text; empty unless Tokenizer::has_offsets().
  std::vector<std::pair<int64_t, int64_t>> offsets;
  /// The same in bytes of the text, as `text.substr(begin, end - begin)` takes them.
  std::vector<std::pair<int64_t, int64_t>> byte_offsets;
  std::vector<int> special_tokens_mask;  ///< 1 for tokens that the template adds
};

class DecodeStream;

namespace tokenizers {

/// Turns text into ids and ids into text, as `tokenizers` 0.23 and transformers 5.23 do. It knows
/// nothing of LibTorch; posenc::Tokenizer is the same with tensors.
///
/// ```cpp
/// auto tokenizer = posenc::tokenizers::Tokenizer::from_folder("models/bert-base-uncased");
/// auto text = tokenizer.decode(tokenizer.encode_ids("Hello world"));
/// auto batch = tokenizer.encode({"Hello world", "How are you?"});
/// std::vector<int64_t> ids(static_cast<size_t>(batch.rows() * batch.columns()));
/// posenc::tokenizers::BatchMemory memory;
/// memory.ids = ids.data();
/// batch.write(memory);
/// ```
///
/// Immutable; any number of threads may use one. Copies share the vocabulary.
///
/// Errors: TokenizerError for files; ArgumentError for text that is not UTF-8 (with its index and
/// byte), a max_length below the number of special tokens, a stride that leaves nothing, ids out of
/// range, and padding without a padding token.
///
/// Source: `tokenizers` 0.23.3, `transformers` 5.23.0.
class Tokenizer {
 public:
  /// The tokenizer of a model's folder, as `AutoTokenizer.from_pretrained(folder)` makes it: its
  /// tokenizer_config.json decides, and tokenizer.json, vocab.txt, vocab.json and merges.txt, or a
  /// SentencePiece model have the vocabulary. With `lowercases_first` text is lowercased before the
  /// tokenizer's own `normalizer`, unless that has a `Lowercase` of its own: `do_lower_case` of
  /// sentence-transformers. `special_tokens` become special tokens that are cut out of a text as it
  /// is, as transformers' `add_special_tokens` makes them of AddedTokens with `normalized` false: a
  /// ColBERT's markers, such as `[unused0]`. Not for classes that transformers runs in Python.
  static Tokenizer from_folder(const std::string& folder, bool lowercases_first = false,
                               const std::vector<std::string>& special_tokens = {});
  /// The tokenizer that a tokenizer.json describes, as `tokenizers.Tokenizer.from_file(path)` makes
  /// it. Of its blocks `padding` and `truncation` the padding token, the sides and `max_length` are
  /// used where the options ask for padding and truncation; own_options() asks for both.
  static Tokenizer from_file(const std::string& path);

  /// The same of files in memory, each with its name in the folder. One file alone is a
  /// tokenizer.json, as from_file() takes it.
  static Tokenizer from_memory(const std::vector<std::pair<std::string, std::string_view>>& files);

  /// Encodes texts.
  EncodedBatch encode(const std::vector<std::string>& texts,
                      const TokenizerOptions& options = {}) const;
  /// Encodes pairs of texts; an empty second text is a pair too. (As an overload of encode() it
  /// would make `encode({"a", "b"})` ambiguous.)
  EncodedBatch encode_pairs(const std::vector<std::pair<std::string, std::string>>& pairs,
                            const TokenizerOptions& options = {}) const;
  /// The same for texts that are elsewhere in memory; `seconds` are empty, or one for each.
  EncodedBatch encode_views(const std::vector<std::string_view>& texts,
                            const std::vector<std::string_view>& seconds = {},
                            const TokenizerOptions& options = {}) const;
  /// The tokens of one text; with `pair` of a pair. More than one only with overflow.
  std::vector<Encoding> encode_one(std::string_view text,
                                   std::optional<std::string_view> pair = std::nullopt,
                                   const TokenizerOptions& options = {}) const;
  /// The ids of one text or pair alone, without overflow: faster than encode_one(), since neither
  /// tokens nor offsets are found.
  std::vector<int64_t> encode_ids(std::string_view text,
                                  std::optional<std::string_view> pair = std::nullopt,
                                  const TokenizerOptions& options = {}) const;

  /// The text of ids; without special tokens unless `skip_special_tokens` is false.
  std::string decode(const std::vector<int64_t>& ids, bool skip_special_tokens = true) const;
  /// Decodes ids that come one by one.
  DecodeStream decode_stream(bool skip_special_tokens = true) const;

  /// The id of a token, or nothing.
  std::optional<int64_t> token_to_id(std::string_view token) const;
  /// The token of an id, or nothing.
  std::optional<std::string> id_to_token(int64_t id) const;
  /// What a token is in the middle of a text, in bytes, of which some may be a part of a character;
  /// none if there is no such token, or transformers' get_vocab() does not list it. As
  /// StopStringCriteria of transformers finds it.
  std::string token_bytes(int64_t id) const;
  /// Number of tokens, added ones included.
  int64_t vocab_size() const;
  /// The ids of all special tokens of a folder: the named ones and those beside them, as
  /// `all_special_ids` of transformers. None of a file, which names none.
  std::vector<int64_t> special_token_ids() const;
  /// The options with which encode() pads and cuts as the blocks `padding` and `truncation` of a
  /// file say. Those of a folder are the default, as transformers leaves such blocks out.
  TokenizerOptions own_options() const;
  /// Whether its tokens have offsets: not those of classes that transformers runs in Python.
  bool has_offsets() const;
  /// Whether padding is on the left where the options name no side.
  bool pads_left() const;
  /// Whether the model takes token types; a file does not say, and a folder may.
  bool has_types() const;
  /// The folder's `model_max_length`; nothing if it has none.
  std::optional<int64_t> model_max_length() const;
  /// The id of a named special token of the folder, such as `mask_token`; nothing if it has none.
  std::optional<int64_t> special_token_id(std::string_view name) const;
  /// The named special tokens of the folder, such as `bos_token`, and those that only its model
  /// has, as `special_tokens_map` of transformers.
  std::map<std::string, std::string> special_tokens_map() const;

 private:
  friend struct text::TokenizerAccess;
  explicit Tokenizer(std::shared_ptr<const text::LoadedTokenizer> loaded)
      : loaded_(std::move(loaded)) {}

  EncodedBatch encode_rows(const std::vector<std::string_view>& texts,
                           const std::vector<std::string_view>& seconds,
                           const TokenizerOptions& options,
                           const text::BatchRequest& request) const;

  std::shared_ptr<const text::LoadedTokenizer> loaded_;
};

}  // namespace tokenizers

/// The text of ids that come one by one, such as those of generate().
class DecodeStream {
 public:
  /// Adds an id; returns the text that is complete with it, or nothing while a character is
  /// incomplete.
  std::optional<std::string> step(int64_t id);
  /// Returns the rest of the text once all ids have been given, and begins a new text: what an
  /// incomplete character decodes to, which is one U+FFFD, or one for each of its bytes where the
  /// decoder has a ByteFallback, as that of Llama; empty for none. All that step() and end() return
  /// is together what decode() makes of the ids, before the changes to a whole text that some
  /// folders ask for. A ByteFallback makes U+FFFD of all bytes of a run that is not UTF-8 as a
  /// whole, and step() has given the complete characters at its beginning before.
  std::string end();

 private:
  friend class tokenizers::Tokenizer;
  explicit DecodeStream(std::shared_ptr<text::StreamState> state) : state_(std::move(state)) {}

  std::shared_ptr<text::StreamState> state_;
};

}  // namespace posenc
