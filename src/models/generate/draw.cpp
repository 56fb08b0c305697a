#include <limits>

#include "models/generate/step_model.h"

namespace posenc {

torch::Tensor draw(const torch::Tensor& log_probabilities, const GenerateOptions& options) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  // Relative to the best, so that a low temperature cannot turn all of them into -inf.
  torch::Tensor scores =
      (log_probabilities - log_probabilities.amax(1, /*keepdim=*/true)) / options.temperature();
  if (options.top_k() > 0 && options.top_k() < scores.size(1)) {
    const auto kth = std::get<0>(scores.topk(options.top_k(), 1)).narrow(1, options.top_k() - 1, 1);
    scores = scores.masked_fill(scores < kth, kNever);
  }
  if (options.top_p() < 1.0) {
    const auto [sorted, order] = scores.sort(1, /*descending=*/true);
    const auto share = sorted.softmax(1);
    const auto before = share.cumsum(1) - share;  // of all more probable tokens: 0 for the first
    scores = scores.scatter(1, order, sorted.masked_fill(before >= options.top_p(), kNever));
  }
  return scores.softmax(1).multinomial(1, /*replacement=*/false, options.generator()).squeeze(1);
}

}  // namespace posenc
