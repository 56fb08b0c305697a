#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/folder/arguments.h"
#include "text/folder/folder.h"
#include "text/folder/token_ids.h"

namespace posenc::text {

/// The files that a class of transformers reads where there is no tokenizer.json.
struct VocabularyFiles {
  const char* vocab = nullptr;
  const char* merges = nullptr;
};

/// A piece of a template as Python writes it, such as "[CLS]:0" or "$A", and the list of them.
using Template = std::vector<std::string>;
/// The pieces between blanks.
Template pieces_of(const std::string& text);

/// Makes a tokenizer as the constructor of a class of transformers does: the class says what its
/// model and its components are, then calls finish() where Python calls TokenizersBackend's
/// constructor, and then may replace the post-processor, for which the tokens now have ids.
class ClassBuilder {
 public:
  using Named = std::optional<GivenToken>;

  /// `file` is the definition in tokenizer.json, if there is one.
  ClassBuilder(const FolderFiles& files, Settings tokenizer_config, std::optional<Definition> file,
               std::string tokenizer_class);

  Arguments arguments;
  Definition definition;  ///< of the tokenizer that is made
  FolderSettings settings;

  const FolderFiles& files() const { return files_; }
  bool has_file() const { return file_.has_value(); }

  /// Takes tokenizer.json as it is. Throws TokenizerError if there is none.
  void take_file();
  /// Begins a model with the vocabulary, and for BPE the merges, of tokenizer.json or of the
  /// class's files. Throws TokenizerError.
  ModelDefinition& begin_model(ModelDefinition::Kind kind, const VocabularyFiles& files);
  /// The charsmap of the first Precompiled normaliser of tokenizer.json or of a SentencePiece
  /// model.
  const std::optional<std::string>& charsmap() const { return charsmap_; }
  void set_charsmap(std::string base64) { charsmap_ = std::move(base64); }

  /// A named token with the constructor's default.
  Named named(const char* name, const char* otherwise);
  Named named(const char* name, Named otherwise);
  /// The same for one that is a plain string by default, and gets flags: see with_flags().
  Named flagged(const char* name, const char* otherwise, bool lstrip,
                std::optional<bool> normalized = std::nullopt, bool special = false);
  /// The token's text; "None" for none, as Python's str().
  static std::string text_of(const Named& token) { return token ? token->content : "None"; }
  /// Tokens beside the named ones, unless the folder has its own list in extra_special_tokens.
  void set_extra(std::vector<GivenToken> tokens);

  /// What TokenizersBackend's constructor does: sides, special tokens, added tokens,
  /// post-processor.
  void finish();
  /// What its _post_init() does: adds the special tokens once more, as special ones.
  void post_init();

  bool has_named(const char* name) const;  ///< after finish()
  /// The text of a named token after finish(). Throws TokenizerError for none.
  std::string named_text(const char* name) const;
  /// The same; "None" for none.
  std::string text_or_none(const char* name) const {
    return has_named(name) ? named_text(name) : "None";
  }
  bool has_id(const std::string& token) const { return ids_->find(token).has_value(); }
  /// The id of a token, or of the unknown token where there is none; nothing if that is missing
  /// too.
  std::optional<uint64_t> id(const std::string& token) const;
  /// The id of a named token after finish(); `otherwise` where there is no such token.
  uint64_t named_id(const char* name, uint64_t otherwise) const;
  /// The id of a token. Throws TokenizerError where id() has none.
  uint64_t required_id(const std::string& token) const;
  /// Says that these are special tokens too, without adding them.
  void append_extra(const std::vector<std::string>& tokens);
  /// Takes the flags of all special tokens back.
  void restore_flags();

  void set_template(const Template& single, const Template& pair,
                    const std::vector<std::string>& specials);
  void set_template_with_ids(const Template& single, const Template& pair,
                             const std::vector<std::pair<std::string, uint64_t>>& specials);
  /// The template of the beginning and the end token, as far as they are added.
  void update_post_processor();
  using TokenId = std::pair<std::string, uint64_t>;
  void set_roberta(const TokenId& sep, const TokenId& cls, bool trim_offsets,
                   bool add_prefix_space);

  /// The tokenizer that was made.
  FolderTokenizer result() &&;

 private:
  Named& keep(const char* name, Named token);
  void read_sides();
  void read_special_tokens();
  void add_folder_tokens();

  const FolderFiles& files_;
  std::optional<Definition> file_;
  std::optional<std::string> charsmap_;
  std::vector<std::pair<std::string, Named>> named_;  // as the constructor passes them on
  std::vector<std::pair<std::string, GivenToken>> special_tokens_;  // _special_tokens_map
  std::vector<GivenToken> extra_;                                   // _extra_special_tokens
  std::unique_ptr<TokenIds> ids_;
  bool adds_bos_ = false, adds_eos_ = false;
  bool updates_post_processor_ = false;
};

}  // namespace posenc::text
