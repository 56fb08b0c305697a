#include "posenc/inference/encoded_sources.h"

#include <utility>

#include "core/handle.h"
#include "inference/generate/source_memory.h"

namespace posenc {
namespace {

// Throws for sources that were moved from.
const inference::SourceMemory& of(const std::shared_ptr<const inference::SourceMemory>& memory) {
  return *referred("EncodedSources", memory);
}

}  // namespace

namespace inference {

SourceMemory::SourceMemory(const TransformerOptions& options, const torch::Tensor& src)
    : options_(options),
      src_(src.dim() == 2 ? src.detach().clone()
                          : torch::empty({src.size(0), 0, 0}, torch::kFloat)) {}

torch::Tensor SourceMemory::src(const Indices& sources) const {
  return src_.index_select(0, torch::tensor(sources, torch::kLong).to(src_.device()));
}

EncodedSources SourceMemory::sources(std::shared_ptr<const SourceMemory> memory) {
  auto all = all_sources(memory->src_.size(0));
  return {std::move(memory), std::move(all)};
}

}  // namespace inference

EncodedSources::EncodedSources(std::shared_ptr<const inference::SourceMemory> memory,
                               std::vector<int64_t> sources)
    : memory_(std::move(memory)), sources_(std::move(sources)) {}

int64_t EncodedSources::size() const { return static_cast<int64_t>(sources_.size()); }

EncodedSources EncodedSources::select(const std::vector<int64_t>& sources) const {
  of(memory_);
  std::vector<int64_t> selected;
  for (const int64_t source : sources) {
    TORCH_CHECK_VALUE(source >= 0 && source < size(), "[EncodedSources] a source must lie in [0, ",
                      size(), "). Got ", source);
    selected.push_back(sources_[source]);
  }
  return {memory_, std::move(selected)};
}

std::vector<std::vector<Hypothesis>> EncodedSources::generate(
    const GenerateOptions& options) const {
  const inference::SourceMemory& memory = of(memory_);
  SearchPlan plan = plan_search(options, memory.src(sources_), memory.options());
  if (plan.sources == 0) return {};
  return memory.search(std::move(plan), sources_);
}

torch::Tensor EncodedSources::next_logits(const std::vector<std::vector<int64_t>>& targets) const {
  const TransformerOptions& model = of(memory_).options();
  check_targets("next_logits", targets, size(), model, /*undecoded=*/0);
  if (targets.empty()) return torch::empty({0, model.tgt_vocab()}, torch::kFloat);
  return memory_->next_logits(sources_, targets);
}

std::vector<torch::Tensor> EncodedSources::attention(
    const std::vector<std::vector<int64_t>>& targets, const std::vector<LayerHead>& heads) const {
  const TransformerOptions& model = of(memory_).options();
  check_targets("attention", targets, size(), model, /*undecoded=*/0);
  const int64_t most = model.decoder_num_heads().value_or(model.num_heads());
  for (const auto& [layer, head] : heads)
    TORCH_CHECK_VALUE(layer >= 0 && layer < model.num_decoder_layers() && head >= 0 && head < most,
                      "[attention] a layer and a head must lie in [0, ", model.num_decoder_layers(),
                      ") and [0, ", most, "). Got ", layer, " and ", head);
  if (targets.empty()) return {};
  return memory_->attention(sources_, targets, heads);
}

}  // namespace posenc
