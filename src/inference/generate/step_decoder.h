#pragma once

#include <optional>
#include <vector>

#include "inference/attention/token_cache.h"
#include "inference/generate/memory_heads.h"
#include "inference/generate/step_model.h"
#include "kernels/inference.h"
#include "posenc/inference/encoded_sources.h"

namespace posenc::inference {

/// How the products of a step add up: as those of its rows do, which is fastest, or as those of one
/// source do alone, so that the others change no bit of its results.
enum class StepSums { OfAllRows, OfOneSource };

/// Incremental decoder of a frozen model. The rows of one source share the memory's keys and
/// values, which are read once for all of them. A row's own tokens are a list of pointers, so beams
/// are reordered by reordering lists.
class StepDecoder : public StepModel {
 public:
  /// Decodes `rows_per_source` targets of at most `capacity` tokens for each of `sources`, which
  /// are indices of those in `memory`. `mask` is the part of the memory mask that its packing does
  /// not cover.
  StepDecoder(const TransformerModel& model, const MemoryHeads& memory, const ScoreMask& mask,
              const std::vector<int64_t>& sources, int64_t rows_per_source, int64_t capacity,
              StepSums sums);

  /// Reads the first tokens of the rows of each source, `targets`[i], all at once; a target may be
  /// empty. Returns what they attend to by the `wanted` layers and heads, (wanted, tokens of all
  /// targets, S); with these nothing can be read after them.
  at::Tensor read(const std::vector<std::vector<int64_t>>& targets,
                  const std::vector<LayerHead>& wanted = {});
  /// Reads targets, which have a token, and returns the logits (R, V) of the next ones.
  at::Tensor next_logits(std::vector<std::vector<int64_t>> targets);

  torch::Tensor step(const torch::Tensor& tokens) override;
  void set_positions(const StepPositions& positions) override { positions_ = positions; }
  void select(const torch::Tensor& rows) override;
  torch::Tensor attention() const override;
  void check_unchanged() const override { model_.stale_check.check(); }

 private:
  void make_room(int64_t tokens);
  void take_slots(int64_t calls);
  StepPositions places() const;
  std::vector<int64_t> places_in(const std::vector<int64_t>& target) const;
  void extend_relative();
  at::Tensor memory_bias() const;
  kernels::inference::AttentionRequest attention(const float* query, int64_t stride) const;
  void attend_own(size_t layer, const float* query, int64_t stride) const;
  void attend_memory(size_t layer, const float* query, const at::Tensor& bias) const;
  at::Tensor memory_weights(int64_t layer, std::optional<int64_t> head,
                            const at::Tensor& bias) const;
  Stream run(const at::Tensor& ids, const StepPositions& where, RowRegime regime,
             const std::vector<LayerHead>& wanted, const at::Tensor& weights);

  const TransformerModel& model_;
  const MemoryHeads& memory_;
  int64_t rows_, rows_per_source_, capacity_;
  StepSums sums_;
  std::optional<StepPositions> positions_;  // of the next step's tokens
  TokenSlots slots_;                        // for a token's keys and values of all layers
  TokenLists tokens_;                       // of the targets
  std::vector<int64_t> source_;             // of the memory, per row
  at::Tensor bias_;                         // (B, H, capacity|1, S) for the memory, or undefined
  at::Tensor memory_distances_;             // (H, capacity + S - 1), that of the last token first
  std::vector<at::Tensor> relative_;        // (H, relative_length_) of each distance
  at::Tensor alibi_;                        // the same
  int64_t relative_length_ = 0;
  bool is_causal_;  // token i sees tokens 0 .. i of the memory

  // The tokens of a call, those of a row one after the other.
  std::vector<int64_t> row_of_, place_of_;  // place: how many tokens the row had before it
  std::vector<float*> new_tokens_;
  VisibleTokens visible_own_, visible_memory_;
  int64_t room_ = 0;                                     // of the buffers, in tokens
  at::Tensor x_, input_, projected_, attended_, query_;  // (tokens, .)
  at::Tensor logits_;                                    // (rows, V)
  at::Tensor input_converted_;                           // the blocks' input as they read it
};

}  // namespace posenc::inference
