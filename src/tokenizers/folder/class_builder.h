#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizers/folder/base_constructor.h"
#include "tokenizers/folder/token_ids.h"

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
class ClassBuilder : public BaseConstructor {
 public:
  /// `file` is the definition in tokenizer.json, if there is one.
  ClassBuilder(const FolderFiles& files, Settings tokenizer_config, std::optional<Definition> file,
               std::string tokenizer_class);

  Definition definition;  ///< of the tokenizer that is made

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

  /// What TokenizersBackend's constructor does: sides, special tokens, added tokens,
  /// post-processor.
  void finish();
  /// What its _post_init() does: adds the special tokens once more, as special ones.
  void post_init();

  bool has_id(const std::string& token) const { return ids_->find(token).has_value(); }
  /// The id of a token, or of the unknown token where there is none; nothing if that is missing
  /// too.
  std::optional<uint64_t> id(const std::string& token) const;
  /// Number of tokens, added ones included.
  std::size_t vocabulary_size() const { return ids_->size(); }
  /// The token of an id after finish(); nothing if there is none.
  std::optional<std::string> token(uint64_t id) const { return ids_->token(id); }
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
  /// The same for texts of the target language.
  void set_target_template(const Template& single, const Template& pair,
                           const std::vector<std::string>& specials);
  /// The template of the beginning and the end token, as far as they are added.
  void update_post_processor();
  using TokenId = std::pair<std::string, uint64_t>;

  /// The tokenizer that was made.
  FolderTokenizer result() &&;

 private:
  void set_default_sides();
  void add_folder_tokens();

  const FolderFiles& files_;
  std::optional<Definition> file_;
  std::optional<std::string> charsmap_;
  std::unique_ptr<TokenIds> ids_;
  bool adds_bos_ = false, adds_eos_ = false;
  bool updates_post_processor_ = false;
};

/// Replaces the expression that cuts words where the folder sets `fix_mistral_regex`, as
/// transformers does: for large vocabularies beside a config.json of a Mistral model, or of none,
/// that an older transformers than 5.0 has written.
void fix_mistral_regex(ClassBuilder& builder);

}  // namespace posenc::text
