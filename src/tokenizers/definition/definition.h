#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::text {

class JsonCursor;

/// Keeps strings at fixed addresses: the vocabulary of a file is read once, and everything else
/// refers to it.
class Strings {
 public:
  std::string_view keep(std::string_view text);

 private:
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  std::size_t left_ = 0;
};

/// A token of a vocabulary, and its id.
struct Piece {
  std::string_view text;
  uint32_t id;
};

/// Two tokens that BPE joins; the index in the list is their rank.
struct Merge {
  std::string_view left, right;
};

/// What a tokenizer.json says of its model. A class of transformers that makes its own model
/// changes it before the tokenizer is made.
struct ModelDefinition {
  enum class Kind { Bpe, WordPiece, WordLevel, Unigram };

  Kind kind = Kind::WordLevel;
  std::vector<Piece> vocab;                 // in the file's order; of Unigram the index is the id
  std::vector<double> scores;               // Unigram: of each piece, as serde_json rounds them
  std::vector<double> exact_scores;         // the same rounded correctly, as Python reads them
  std::vector<Merge> merges;                // BPE
  std::optional<std::string> unk_token;     // BPE, WordPiece, WordLevel
  std::optional<uint64_t> unk_id;           // Unigram
  std::string continuing_subword_prefix;    // WordPiece, BPE
  std::string end_of_word_suffix;           // BPE
  uint64_t max_input_chars_per_word = 100;  // WordPiece
  bool fuse_unk = false;                    // BPE
  bool byte_fallback = false;               // BPE, Unigram
  bool ignore_merges = false;               // BPE
};

/// A token that is cut out of the text before the model sees it.
struct AddedToken {
  std::string content;
  bool single_word = false;
  bool lstrip = false;
  bool rstrip = false;
  bool normalized = true;
  bool special = false;
  std::optional<uint64_t> id;  // in the file; the tokenizer gives its own
  // Whether it or one that it replaces was `normalized`: it is spelled in its normal form from then
  // on.
  bool was_normalized = false;

  /// Takes the place of an older token with the same content.
  void replace(const AddedToken& old) {
    was_normalized = was_normalized || old.normalized || old.was_normalized;
  }
};

/// All that a tokenizer.json says. Components are kept as the file has them: objects with `type`,
/// or null.
struct Definition {
  std::shared_ptr<Strings> strings = std::make_shared<Strings>();  // of the vocabulary
  std::shared_ptr<Strings> merge_strings =
      std::make_shared<Strings>();  // which a model does not keep
  nlohmann::json normalizer, pre_tokenizer, post_processor, decoder;
  nlohmann::json target_post_processor;  // for texts of the target language; null for the other
  nlohmann::json truncation, padding;
  ModelDefinition model;
  std::vector<AddedToken> added_tokens;  // in the file's order; ids in the file are not used
};

/// The definition in the text of a tokenizer.json. Throws TokenizerError.
Definition read_definition(std::string_view json);

/// The added tokens in the text of a tokenizer.json, whatever else it says. Throws TokenizerError.
std::vector<AddedToken> read_added_tokens(std::string_view json);

/// Reads the model of a tokenizer.json, an object, to `definition`. Throws TokenizerError.
void read_model(JsonCursor& cursor, Definition& definition);
void read_model(std::string_view json, Definition& definition);

/// The tokens and ids in the text of a JSON object, such as a vocab.json. Throws TokenizerError.
void read_vocabulary(std::string_view json, Definition& definition);

/// A score in the text of a JSON number as serde_json rounds it.
double serde_score(std::string_view number);

/// Splits "a b", a merge as older files have it. Throws TokenizerError unless there is exactly one
/// blank.
Merge split_merge(std::string_view line);

}  // namespace posenc::text
