#pragma once

#include <vector>

#include "inference/attention/token_cache.h"
#include "inference/freeze/model.h"
#include "inference/generate/step_model.h"
#include "kernels/inference.h"

namespace posenc::inference {

/// Incremental decoder of a frozen model. The rows of one source share the memory's keys and
/// values. A row's own tokens are a list of pointers, so beams are reordered by reordering lists.
class StepDecoder : public StepModel {
 public:
  /// Decodes `rows_per_source` targets of at most `capacity` tokens for each source in `memory`.
  /// `mask` is the part of the memory mask that its packing does not cover.
  StepDecoder(const TransformerModel& model, const Memory& memory, const ScoreMask& mask,
              int64_t rows_per_source, int64_t capacity);

  torch::Tensor step(const torch::Tensor& tokens) override;
  void set_positions(const StepPositions& positions) override { positions_ = positions; }
  void select(const torch::Tensor& rows) override;
  torch::Tensor attention() const override;
  void check_unchanged() const override { model_.stale_check.check(); }

 private:
  void project_memory(const Memory& memory);
  void take_slots();
  void extend_relative();
  at::Tensor memory_bias(int64_t query) const;
  at::Tensor memory_distance_bias(int64_t query) const;
  kernels::inference::AttentionRequest attention(size_t layer, const float* query,
                                                 int64_t stride) const;
  void attend_own(size_t layer, const float* query, int64_t stride) const;
  void attend_memory(size_t layer, const float* query, const at::Tensor& bias) const;

  const TransformerModel& model_;
  int64_t rows_, capacity_, length_ = 0;
  std::optional<StepPositions> positions_;  // of the next step's tokens
  TokenSlots slots_;                        // for a token's keys and values of all layers
  TokenLists tokens_;                       // of the targets
  std::vector<float*> new_tokens_;          // those of this step
  at::Tensor memory_;                       // keys and values of the memory's tokens
  std::vector<const float*> memory_tokens_;
  std::vector<int64_t> packed_positions_;  // Packing::positions of the memory
  int64_t source_length_;
  std::vector<int64_t> source_;           // per row
  std::vector<int64_t> first_, lengths_;  // the memory's tokens, per source
  at::Tensor bias_;                       // (B, H, capacity|1, S) for the memory, or undefined
  at::Tensor memory_distances_;           // (H, capacity + S - 1), that of the last token first
  at::Tensor kept_positions_;             // (B S), Packing::kept_positions()
  std::vector<at::Tensor> relative_;      // RelativeBias::before(relative_length_)
  at::Tensor alibi_;                      // AlibiSlopes::before(), the same
  int64_t relative_length_ = 0;
  bool is_causal_;                              // token i sees tokens 0 .. i of the memory
  VisibleTokens visible_own_, visible_memory_;  // in this step
  at::Tensor input_, projected_, attended_, query_, logits_;  // (rows, .)
  at::Tensor input_converted_;                                // the blocks' input as they read it
};

}  // namespace posenc::inference
