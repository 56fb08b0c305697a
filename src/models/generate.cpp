#include "posenc/models/generate.h"

#include <algorithm>
#include <cmath>

#include "models/generate/search.h"
#include "posenc/core/check.h"

namespace posenc {
namespace {

void check_generation(const TransformerImpl& model, const torch::Tensor& src,
                      const GenerateOptions& options) {
  const char* name = "generate";
  const int64_t vocab = model.options.tgt_vocab();
  TORCH_CHECK_VALUE(!model.is_training(),
                    "[generate] the model must be in eval mode: model->eval(). Got train mode");
  TORCH_CHECK_VALUE(src.dim() == 2, "[generate] src must be ids (B, S). Got ", src.sizes());
  check_positive(name, "beams", options.beams());
  check_positive(name, "n_best", options.n_best());
  check_positive(name, "max_length", options.max_length());
  TORCH_CHECK_VALUE(options.max_length() <= model.options.max_len(),
                    "[generate] max_length must be at most the model's max_len ",
                    model.options.max_len(), ". Got ", options.max_length());
  TORCH_CHECK_VALUE(options.begin() >= 0 && options.begin() < vocab,
                    "[generate] begin must lie in [0, ", vocab, "). Got ", options.begin());
  TORCH_CHECK_VALUE(!options.sample() || options.beams() == 1,
                    "[generate] samples are drawn without beams. Got beams ", options.beams());
  TORCH_CHECK_VALUE(options.sample() || options.n_best() <= options.beams(),
                    "[generate] n_best must be at most beams ", options.beams(), ". Got ",
                    options.n_best());
  TORCH_CHECK_VALUE(options.temperature() > 0.0, "[generate] temperature must be above 0. Got ",
                    options.temperature());
  TORCH_CHECK_VALUE(options.top_k() >= 0, "[generate] top_k must not be negative. Got ",
                    options.top_k());
  TORCH_CHECK_VALUE(options.top_p() > 0.0 && options.top_p() <= 1.0,
                    "[generate] top_p must lie in (0, 1]. Got ", options.top_p());
}

// The mask for one query, a row for each sequence: rows of one source stand together.
AttentionMask repeated(const AttentionMask& mask, const AttentionShape& shape,
                       const torch::Tensor& memory, int64_t times) {
  const auto bias = mask.resolve(shape, memory).bias;
  if (!bias.defined()) return {};
  return AttentionMask::additive(bias.size(0) > 1 ? bias.repeat_interleave(times, 0) : bias);
}

}  // namespace

torch::Tensor Search::step() { return model.step(tokens, cache).to(torch::kFloat).log_softmax(1); }

bool Search::stops(int64_t token) const {
  return std::find(options.stop().begin(), options.stop().end(), token) != options.stop().end();
}

double Search::score(double log_probability, int64_t length) const {
  return log_probability / std::pow(static_cast<double>(length), options.length_penalty());
}

bool Search::go_on(int64_t step, int64_t finished) const {
  return !options.progress() || options.progress()({step, options.max_length(), finished, sources});
}

std::vector<std::vector<Hypothesis>> generate(TransformerImpl& model, const torch::Tensor& src,
                                              const AttentionMask& src_mask,
                                              const GenerateOptions& options) {
  check_generation(model, src, options);
  const torch::NoGradGuard no_grad;
  const int64_t sources = src.size(0);
  if (sources == 0) return {};
  const int64_t rows = options.sample() ? options.n_best() : options.beams();  // a source
  const auto memory = model.encode(src, src_mask);                             // (B, S, D)
  const auto mask =
      repeated(src_mask, {sources, model.options.num_heads(), 1, src.size(1)}, memory, rows);
  const auto begin = torch::full({sources * rows, 1}, options.begin(),
                                 torch::TensorOptions(torch::kLong).device(memory.device()));
  Search search{model,
                options,
                sources,
                rows,
                model.start(memory.repeat_interleave(rows, 0), options.max_length(), mask),
                begin};
  return options.beams() > 1 ? beam_search(search) : row_search(search);
}

}  // namespace posenc
