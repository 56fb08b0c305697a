#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/decoders/decoder.h"
#include "tokenizers/definition/definition.h"
#include "tokenizers/models/model.h"
#include "tokenizers/normalizers/normalizer.h"
#include "tokenizers/pipeline/added_tokens.h"
#include "tokenizers/pipeline/text_pipeline.h"
#include "tokenizers/pipeline/workspaces.h"
#include "tokenizers/post_processors/post_processor.h"
#include "tokenizers/pre_tokenizers/pre_tokenizer.h"

namespace posenc::text {

/// A tokenizer of `tokenizers`: added tokens, normaliser, pre-tokenizer, model, truncation,
/// post-processor and decoder.
class TokenizerPipeline : public TextPipeline {
 public:
  /// With `split_special_tokens`, special tokens in a text are text. Throws TokenizerError.
  explicit TokenizerPipeline(Definition definition, bool split_special_tokens = false);
  ~TokenizerPipeline() override;

  /// Throws TokenizerError where `tokenizers` panics.
  void encode(std::string_view text, std::optional<std::string_view> pair,
              const EncodeRequest& request, std::size_t index, EncodedRows& rows) const override;
  /// The text of ids; those without a token are left out.
  std::string decode(const std::vector<uint32_t>& ids, bool skip_special_tokens) const override;
  std::string join(std::vector<std::string> tokens) const override;
  bool marks_subwords() const override {
    return !definition_.model.continuing_subword_prefix.empty();
  }

  std::optional<uint32_t> token_to_id(std::string_view token) const override;
  std::optional<std::string> id_to_token(uint32_t id) const override;
  bool lists(uint32_t id) const override { return spelling_of(id).has_value(); }
  std::size_t vocab_size() const override { return model_->size() + added_tokens_.new_tokens(); }
  bool has_offsets() const override { return true; }

  /// The token of an id as decode() uses it: nothing for one that is skipped.
  std::optional<std::string_view> decoded_token(uint32_t id, bool skip_special_tokens) const;
  /// Null if tokens are joined by blanks.
  const Decoder* decoder() const { return decoder_.get(); }

 private:
  struct Workspace;

  std::optional<std::string_view> spelling_of(uint32_t id) const;

  TruncationRule checked(TruncationRule rule, const PostProcessor& post_processor, bool is_pair,
                         bool add_special_tokens) const;

  Definition definition_;  // the vocabulary's strings
  std::unique_ptr<const Model> model_;
  NormalizerPtr normalizer_;
  PreTokenizerPtr pre_tokenizer_;
  PostProcessor post_processor_;
  std::optional<PostProcessor> target_post_processor_;
  std::unique_ptr<const Decoder> decoder_;
  AddedTokens added_tokens_;
  mutable Workspaces<Workspace> workspaces_;
};

}  // namespace posenc::text
