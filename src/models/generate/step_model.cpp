#include "models/generate/step_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"

namespace posenc {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
// Bound on length ^ length_penalty and its reciprocal: far enough from the limits of float32 that
// dividing a log probability by it neither overflows nor underflows.
constexpr double kMostPenalty = 1e30;
constexpr int64_t kMostStepRows = 1 << 16;  // of one source: the logits of more take gigabytes

void check_rows(const char* name, int64_t rows) {
  TORCH_CHECK_VALUE(rows <= kMostStepRows, "[generate] ", name, " must be at most ", kMostStepRows,
                    ". Got ", rows);
}

void check_token(const char* name, int64_t token, int64_t vocab) {
  TORCH_CHECK_VALUE(token >= 0 && token < vocab, "[generate] ", name, " must lie in [0, ", vocab,
                    "). Got ", token);
}

}  // namespace

void check_source(const torch::Tensor& src) {
  TORCH_CHECK_VALUE(src.defined(), "[generate] src must be ids (B, S). Got an undefined tensor");
  TORCH_CHECK_VALUE(src.dim() == 2, "[generate] src must be ids (B, S). Got ", src.sizes());
}

void check_generation(const GenerateOptions& options, int64_t vocab, int64_t max_len) {
  const char* name = "generate";
  check_positive(name, "num_beams", options.num_beams());
  check_positive(name, "num_return_sequences", options.num_return_sequences());
  check_positive(name, "max_new_tokens", options.max_new_tokens());
  check_rows("num_beams", options.num_beams());
  check_rows("num_return_sequences", options.num_return_sequences());
  TORCH_CHECK_VALUE(options.max_new_tokens() <= max_len,
                    "[generate] max_new_tokens must be at most the model's max_len ", max_len,
                    ". Got ", options.max_new_tokens());
  check_token("bos_id", options.bos_id(), vocab);
  for (const int64_t token : options.eos_ids()) check_token("each of eos_ids", token, vocab);
  for (const int64_t token : options.suppress_tokens())
    check_token("each of suppress_tokens", token, vocab);
  if (options.forced_eos_id()) check_token("forced_eos_id", *options.forced_eos_id(), vocab);
  TORCH_CHECK_VALUE(!options.do_sample() || options.num_beams() == 1,
                    "[generate] do_sample needs num_beams 1. Got ", options.num_beams());
  TORCH_CHECK_VALUE(options.do_sample() || options.num_return_sequences() <= options.num_beams(),
                    "[generate] num_return_sequences must be at most num_beams ",
                    options.num_beams(), ". Got ", options.num_return_sequences());
  const auto temperature = static_cast<float>(options.temperature());
  TORCH_CHECK_VALUE(temperature > 0.0F && std::isfinite(temperature),
                    "[generate] temperature must be above 0 and finite, in float32. Got ",
                    options.temperature());
  TORCH_CHECK_VALUE(std::isfinite(options.length_penalty()),
                    "[generate] length_penalty must be finite. Got ", options.length_penalty());
  const auto longest = static_cast<double>(options.max_new_tokens());
  TORCH_CHECK_VALUE(std::pow(longest, std::abs(options.length_penalty())) <= kMostPenalty,
                    "[generate] max_new_tokens ^ length_penalty must lie between ",
                    1 / kMostPenalty, " and ", kMostPenalty, ", or scores would overflow. Got ",
                    options.max_new_tokens(), " ^ ", options.length_penalty());
  TORCH_CHECK_VALUE(options.top_k() >= 0, "[generate] top_k must not be negative. Got ",
                    options.top_k());
  TORCH_CHECK_VALUE(options.top_p() > 0.0 && options.top_p() <= 1.0,
                    "[generate] top_p must lie in (0, 1]. Got ", options.top_p());
}

NextToken Search::step(int64_t length) {
  const auto logits = decoder.step(tokens).to(torch::kFloat);
  const auto sum = functional::log_sum_exp(logits);
  for (const int64_t token : options.suppress_tokens()) logits.select(1, token).fill_(kNever);
  if (options.forced_eos_id() && length == options.max_new_tokens()) {
    logits.fill_(kNever).select(1, *options.forced_eos_id()).zero_();
    sum.largest.zero_();
    sum.rest.zero_();
  }
  return {logits, options.renormalize() ? functional::log_sum_exp(logits) : sum};
}

void Search::continue_with(const std::vector<int64_t>& rows, const std::vector<int64_t>& next) {
  bool unchanged = static_cast<int64_t>(rows.size()) == tokens.size(0);
  for (size_t i = 0; i < rows.size(); ++i) unchanged &= rows[i] == static_cast<int64_t>(i);
  if (!unchanged) decoder.select(torch::tensor(rows));
  tokens = torch::tensor(next).to(tokens.device()).unsqueeze(1);
}

bool Search::stops(int64_t token) const {
  return std::find(options.eos_ids().begin(), options.eos_ids().end(), token) !=
         options.eos_ids().end();
}

void Search::check_choice(float score, int64_t length, int64_t source) {
  TORCH_CHECK_VALUE(score > kNever,  // false for NaN as well
                    "[generate] token ", length, " of source ", source,
                    " must have a logit that is a number and not suppressed");
}

double Search::score(double log_probability, int64_t length) const {
  // In float32, as in transformers, since it can decide between two nearly equal sequences.
  return static_cast<float>(log_probability) /
         static_cast<float>(std::pow(static_cast<double>(length), options.length_penalty()));
}

bool Search::go_on(int64_t step, int64_t finished) const {
  if (!options.progress()) return true;
  const bool more = options.progress()({step, options.max_new_tokens(), finished, sources});
  decoder.check_unchanged();
  return more;
}

int64_t rows_per_source(const GenerateOptions& options) {
  return options.do_sample() ? options.num_return_sequences() : options.num_beams();
}

Hypotheses search(StepModel& decoder, const GenerateOptions& options, int64_t sources,
                  torch::Device device) {
  const int64_t rows = rows_per_source(options);
  Search search{decoder, options, sources, rows,
                torch::full({sources * rows, 1}, options.bos_id(),
                            torch::TensorOptions(torch::kLong).device(device))};
  auto found = search.options.num_beams() > 1 ? beam_search(search) : row_search(search);
  decoder.check_unchanged();
  return found;
}

}  // namespace posenc
