#pragma once

#include <vector>

#include "inference/model.h"
#include "models/generate/step_model.h"

namespace posenc::inference {

/// The tokens that each row sees: pointers to their keys and values, layer by layer.
struct VisibleTokens {
  std::vector<const float* const*> tokens;
  std::vector<int64_t> counts;
};

/// A frozen model that writes targets token by token. Rows of one source share its keys and values;
/// a row's own tokens are a list of pointers, so that beams change places by their lists. The
/// memory of tokens grows with what is written, in blocks that stay where they are.
class StepDecoder : public StepModel {
 public:
  /// `rows_per_source` targets of at most `capacity` tokens for each source of the memory; `mask`:
  /// for the memory's keys, what its packing does not say.
  StepDecoder(const FrozenTransformer::Impl& model, const Memory& memory, const ScoreMask& mask,
              int64_t rows_per_source, int64_t capacity);

  torch::Tensor step(const torch::Tensor& tokens) override;
  void select(const torch::Tensor& rows) override;

 private:
  void project_memory(const Memory& memory);
  float* take_places();
  void collect_visible(const float* first_place);
  at::Tensor memory_bias() const;
  void attend(size_t layer, const VisibleTokens& seen, const float* query, int64_t stride,
              const at::Tensor& bias) const;

  const FrozenTransformer::Impl& model_;
  int64_t rows_, capacity_, length_ = 0;
  int64_t token_stride_;            // floats of a token: keys and values of all layers
  std::vector<at::Tensor> blocks_;  // of tokens
  float* free_ = nullptr;           // in the last block: the first free place, and how many
  int64_t free_places_ = 0;
  std::vector<std::vector<const float*>> tokens_, next_;  // of each row
  at::Tensor memory_;                                     // its tokens
  std::vector<const float*> memory_tokens_;
  std::vector<int64_t> source_;           // of each row
  std::vector<int64_t> first_, lengths_;  // of each source's tokens in the memory
  at::Tensor bias_;                       // (B, H, capacity|1, S), for the memory; or undefined
  bool is_causal_;                        // token i sees the memory's tokens 0 .. i
  VisibleTokens own_seen_, memory_seen_;  // of this step
  at::Tensor input_, projected_, attended_, query_, logits_;  // (rows, .)
};

}  // namespace posenc::inference
