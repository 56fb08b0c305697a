#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/file_rules.h"
#include "tokenizers/folder/files.h"
#include "tokenizers/folder/folder.h"
#include "tokenizers/pipeline/text_pipeline.h"

namespace posenc::text {

/// What sentence-transformers changes of a folder's tokenizer.
struct FolderChanges {
  bool lowercases_first = false;                 ///< `do_lower_case`
  std::vector<std::string> special_tokens = {};  ///< added, without being normalised
};

/// What a Tokenizer holds: the pipeline, and what the folder or the file says beside it.
class LoadedTokenizer {
 public:
  /// That of a folder, as transformers loads it, with these changes. Throws TokenizerError.
  static std::shared_ptr<const LoadedTokenizer> from_folder(const std::string& folder,
                                                            const FolderChanges& changes);
  /// That of a file, as tokenizers loads it: its blocks `padding` and `truncation` count. Throws
  /// TokenizerError.
  static std::shared_ptr<const LoadedTokenizer> from_file(const std::string& path);

  /// That of files in memory: a folder's, or one tokenizer.json. Throws TokenizerError.
  static std::shared_ptr<const LoadedTokenizer> from_memory(const FilesInMemory& files);

  const TextPipeline& pipeline() const { return *pipeline_; }
  const FolderSettings& settings() const { return settings_; }
  /// What is filled in for padding; nothing if the tokenizer has no token for it.
  struct Padding {
    uint32_t id, type_id;
  };
  std::optional<Padding> padding() const { return padding_; }
  /// What the blocks of a file say; nothing of a folder.
  const std::optional<PaddingRule>& own_padding() const { return own_padding_; }
  const std::optional<TruncationRule>& own_truncation() const { return own_truncation_; }
  /// Whether the model takes types; a file does not say.
  bool has_types() const;
  /// The id of a named special token.
  std::optional<uint32_t> special_token_id(std::string_view name) const;
  /// The ids of all special tokens that the tokenizer has.
  std::vector<uint32_t> special_token_ids() const;
  /// The ids of a text that may come before any other token. Found once.
  const std::vector<uint32_t>& ids_before() const;
  /// The text of ids, as transformers' decode() gives it.
  std::string decode(const std::vector<uint32_t>& ids, bool skip_special_tokens) const;

 private:
  LoadedTokenizer(std::unique_ptr<const TextPipeline> pipeline, FolderSettings settings);

  static std::shared_ptr<const LoadedTokenizer> of_files(const FolderFiles& files,
                                                         const FolderChanges& changes);
  static std::shared_ptr<const LoadedTokenizer> of_text(std::string_view text);

  FolderSettings settings_;
  std::optional<Padding> padding_;
  std::optional<PaddingRule> own_padding_;
  std::optional<TruncationRule> own_truncation_;
  std::unique_ptr<const TextPipeline> pipeline_;
  mutable std::once_flag before_found_;
  mutable std::vector<uint32_t> ids_before_;
};

/// The bytes of a token in the middle of a text, of which some may be parts of a character; none if
/// the tokenizer does not list such an id, as M2M-100's does not list its languages. As
/// transformers' StopStringCriteria finds it.
std::string token_bytes(const std::shared_ptr<const LoadedTokenizer>& tokenizer, uint32_t id);

}  // namespace posenc::text
