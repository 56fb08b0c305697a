#pragma once

#include <c10/util/FunctionRef.h>

#include <memory>
#include <vector>

#include "inference/generate/step_model.h"
#include "models/frozen/freeze_encoder.h"
#include "posenc/models/frozen_decoder.h"

namespace posenc::inference {

struct FrozenDecoderParts {
  DecoderOptions options;
  FrozenEncoder model;
  StaleCheck stale_check;  // of all but `model`
  CacheNeeds needs = {};
  Projection head = {};
  torch_internals::CallOptions call = {};
  FrozenSource source = {};

  void check_unchanged() const {
    check_of(model).check();
    stale_check.check();
  }
  /// The logits (N, V) of rows (N, D), in `to` unless it is undefined.
  at::Tensor logits(const at::Tensor& rows, at::Tensor to = {}) const;
  /// The logits (N, columns) of these columns of the output layer alone.
  at::Tensor logits_in(const at::Tensor& rows, const std::vector<int64_t>& columns) const;
  /// A cache of rows without tokens.
  TokenCache make_cache(int64_t rows, int64_t capacity) const {
    return {needs.attentions, rows, capacity};
  }
};

struct PromptCacheParts {
  std::shared_ptr<const FrozenDecoderParts> model;
  std::vector<int64_t> tokens;
  std::shared_ptr<const TokenCache> cache;  // of one row

  /// How many of a text's tokens it has: not its last one, whose row is wanted.
  int64_t tokens_of(const std::vector<int64_t>& text) const;
};

/// Wraps and unwraps the implementations.
struct FrozenDecoderAccess {
  static FrozenDecoder wrap(FrozenDecoderParts parts) {
    return FrozenDecoder(std::make_shared<const FrozenDecoderParts>(std::move(parts)));
  }
  /// Keeps the model alive while a call runs: a callback may assign another one to `frozen`.
  static std::shared_ptr<const FrozenDecoderParts> parts(const FrozenDecoder& frozen) {
    return frozen.parts_;
  }
  static std::shared_ptr<const PromptCacheParts> parts(const PromptCache& cache) {
    return cache.parts_;
  }
};

/// The next tokens of a row of a cache.
struct NextTokens {
  int64_t row;
  const int64_t* ids;
  int64_t count;
};
/// Which rows of tokens are used: all, or that of the last token of each part.
enum class Rows { All, Last };
/// Is given tokens that have been computed together, and their rows (., D) in the same order.
using UseRows =
    c10::function_ref<void(const std::vector<NextTokens>& part, const at::Tensor& hidden)>;
/// Computes the tokens, which the cache then has, in calls of at most `most` rows; 0: of as many as
/// take little memory. A row whose rotations depend on all of its tokens is computed at once.
void append_tokens(const FrozenDecoderParts& model, TokenCache& cache,
                   const std::vector<NextTokens>& tokens, Rows rows, UseRows use, int64_t most = 0);

/// A text, and the cache that may have its beginning; null: none.
struct CachedText {
  const std::vector<int64_t>& ids;
  std::shared_ptr<const PromptCacheParts> beginning;
};
/// The rows (N, D) of the last tokens of texts that are computed together.
at::Tensor last_rows(const FrozenDecoderParts& model, const std::vector<CachedText>& texts);

/// Continues prompts token by token.
class DecoderSteps : public StepModel {
 public:
  /// For the prompts of a plan. `beginning` may be null.
  DecoderSteps(const FrozenDecoderParts& model, const SearchPlan& plan,
               std::shared_ptr<const PromptCacheParts> beginning);

  torch::Tensor read_prompts() override;
  torch::Tensor step(const torch::Tensor& tokens) override;
  void select(const torch::Tensor& rows) override;
  void check_unchanged() const override { model_.check_unchanged(); }

 private:
  torch::Tensor last_logits(const std::vector<NextTokens>& tokens);

  const FrozenDecoderParts& model_;
  const SearchPlan& plan_;
  const std::shared_ptr<const PromptCacheParts> beginning_;
  const std::optional<int64_t> restart_;  // DecoderOptions::restart_length
  TokenCache cache_;
  std::vector<std::vector<int64_t>> ids_;  // of the rows, if they may be computed anew
  at::Tensor logits_, last_;               // (rows, .)
};

}  // namespace posenc::inference
