#pragma once

#include <memory>
#include <vector>

#include "inference/generate/step_model.h"
#include "posenc/inference/encoded_sources.h"

namespace posenc::inference {

/// What EncodedSources share: a model's sources, with what its decoder reads of them. `sources` are
/// their indices.
class SourceMemory {
 public:
  using Indices = std::vector<int64_t>;
  using Targets = std::vector<std::vector<int64_t>>;

  /// `src`: ids, which are copied, or features, whose number alone is kept.
  SourceMemory(const TransformerOptions& options, const torch::Tensor& src);
  virtual ~SourceMemory() = default;
  SourceMemory(const SourceMemory&) = delete;
  SourceMemory& operator=(const SourceMemory&) = delete;

  /// All sources of a memory.
  static EncodedSources sources(std::shared_ptr<const SourceMemory> memory);

  const TransformerOptions& options() const { return options_; }
  /// The sources as plan_search() takes them.
  torch::Tensor src(const Indices& sources) const;

  /// Runs a search that plan_search() has planned for these sources.
  virtual Hypotheses search(SearchPlan plan, const Indices& sources) const = 0;
  /// Those of EncodedSources, for targets that have been checked; there is at least one.
  virtual torch::Tensor next_logits(const Indices& sources, const Targets& targets) const = 0;
  virtual std::vector<torch::Tensor> attention(const Indices& sources, const Targets& targets,
                                               const std::vector<LayerHead>& heads) const = 0;

 private:
  const TransformerOptions options_;
  const torch::Tensor src_;
};

}  // namespace posenc::inference
