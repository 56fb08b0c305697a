#include <torch/types.h>

#include "differential/ops.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/seq2seq.h"

namespace posenc::differential {
namespace {

// Returns hypotheses as tensors: `tokens.B.N`, and `scores` (B, N) of the existing ones.
StateDict translate(const Json& options, const StateDict& tensors) {
  const auto marian = load_seq2seq(options.at("folder"));
  auto search = marian.generation;
  search.num_beams(options.at("beams")).num_return_sequences(options.at("beams"));
  search.max_new_tokens(options.at("max_length"));
  const auto mask = AttentionMask::key_padding(tensors["mask"]);
  auto model = marian.model;
  const auto found = options.at("frozen").get<bool>()
                         ? generate(freeze(model, FreezeOptions().gemm(GemmBackend::Native)),
                                    tensors["src"], mask, search)
                         : generate(*model, tensors["src"], mask, search);
  StateDict results;
  for (size_t b = 0; b < found.size(); ++b) {
    std::vector<double> scores;
    for (size_t n = 0; n < found[b].size(); ++n) {
      const auto name = "tokens." + std::to_string(b) + "." + std::to_string(n);
      results.insert(name, torch::tensor(found[b][n].tokens, torch::kLong));
      scores.push_back(found[b][n].score);
    }
    results.insert("scores." + std::to_string(b), torch::tensor(scores, torch::kDouble));
  }
  return results;
}

}  // namespace

Ops marian_ops() { return {{"translate", translate}}; }

}  // namespace posenc::differential
