#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "models/generate/step_model.h"

namespace posenc {
namespace {

constexpr float kDead = -std::numeric_limits<float>::infinity();

// The beams of one source, sorted by log probability.
struct Beams {
  std::vector<std::vector<int64_t>> tokens;
  std::vector<float> log_probabilities;
  std::vector<Hypothesis> finished;  // at most one per beam, best first
  bool done = false;
};

struct Candidate {
  float log_probability;
  int64_t beam, token;
};

void finish(Beams& beams, Hypothesis hypothesis) {
  const size_t most = beams.tokens.size();
  auto& finished = beams.finished;
  const auto place = std::find_if(finished.begin(), finished.end(), [&](const Hypothesis& one) {
    return one.score < hypothesis.score;
  });
  finished.insert(place, std::move(hypothesis));
  if (finished.size() > most) finished.pop_back();
}

// Replaces the live beams with the best candidates, sorted. `origin` receives the beam that each
// one extends. All of them end at max_new_tokens.
void advance(const Search& search, const std::vector<Candidate>& candidates, int64_t length,
             Beams& beams, std::vector<int64_t>& origin) {
  const size_t width = beams.tokens.size();
  Beams next;
  next.finished = std::move(beams.finished);
  next.tokens.resize(width);
  next.log_probabilities.assign(width, kDead);
  origin.assign(width, 0);
  const bool last = length == search.options.max_new_tokens();
  size_t live = 0, rank = 0;
  for (const Candidate& candidate : candidates) {
    if (candidate.log_probability == kDead || live == width) break;
    auto tokens = beams.tokens[candidate.beam];
    tokens.push_back(candidate.token);
    if (last || search.stops(candidate.token)) {
      // One that is not among the best `width` would not have become a beam either.
      if (rank++ < width) {
        finish(next, {std::move(tokens), search.score(candidate.log_probability, length)});
      }
      continue;
    }
    ++rank;
    next.tokens[live] = std::move(tokens);
    next.log_probabilities[live] = candidate.log_probability;
    origin[live++] = candidate.beam;
  }
  beams = std::move(next);
}

// Whether the search can stop, according to EarlyStopping.
bool is_done(const Search& search, const Beams& beams, int64_t length) {
  const float best = beams.log_probabilities.front();
  if (best == kDead) return true;
  if (beams.finished.size() < beams.tokens.size()) return false;
  const GenerateOptions& options = search.options;
  if (options.early_stopping() == EarlyStopping::WhenFull) return true;
  const bool to_the_end =
      options.early_stopping() == EarlyStopping::Never && options.length_penalty() > 0;
  return search.score(best, to_the_end ? options.max_new_tokens() : length) <=
         beams.finished.back().score;
}

}  // namespace

Hypotheses beam_search(Search& search) {
  const GenerateOptions& options = search.options;
  const int64_t width = search.rows_per_source;
  std::vector<Beams> sources(search.sources);
  for (Beams& beams : sources) {
    beams.tokens.resize(width);
    beams.log_probabilities.assign(width, kDead);
    beams.log_probabilities[0] = 0.0F;  // all beams are equal at first: start from one
  }
  std::vector<int64_t> live(search.sources);  // the sources still being decoded
  std::iota(live.begin(), live.end(), 0);
  for (int64_t length = 1; length <= options.max_new_tokens() && !live.empty(); ++length) {
    std::vector<float> before;
    for (const int64_t source : live) {
      const auto& own = sources[source].log_probabilities;
      before.insert(before.end(), own.begin(), own.end());
    }
    const auto [logits, sum] = search.step(length);
    const auto rest = sum.rest.cpu();
    for (size_t row = 0; row < before.size(); ++row)
      if (before[row] > kDead && std::isnan(rest.const_data_ptr<float>()[row]))
        search.check_choice(rest.const_data_ptr<float>()[row], length, live[row / width]);
    const int64_t vocab = logits.size(1);
    // Each beam may end with any stop token, and `width` live beams must remain.
    const int64_t wanted = width * (1 + static_cast<int64_t>(options.eos_ids().size()));
    const auto so_far = torch::tensor(before, torch::kFloat).to(logits.device());
    const auto top =
        functional::beam_topk(logits, sum, so_far, width, std::min(wanted, width * vocab));
    const auto best = top.scores.cpu().contiguous();
    const auto index = top.places.cpu().contiguous();

    std::vector<int64_t> left, rows, tokens, origin;
    for (size_t i = 0; i < live.size(); ++i) {
      Beams& beams = sources[live[i]];
      const auto* value = best.const_data_ptr<float>() + i * best.size(1);
      const auto* place = index.const_data_ptr<int64_t>() + i * best.size(1);
      std::vector<Candidate> candidates;
      for (int64_t c = 0; c < best.size(1); ++c) {
        candidates.push_back({value[c], place[c] / vocab, place[c] % vocab});
      }
      if (beams.finished.empty())
        search.check_choice(candidates.front().log_probability, length, live[i]);
      advance(search, candidates, length, beams, origin);
      beams.done = is_done(search, beams, length);
      if (beams.done) continue;
      left.push_back(live[i]);
      for (int64_t beam = 0; beam < width; ++beam) {
        rows.push_back(static_cast<int64_t>(i) * width + origin[beam]);
        tokens.push_back(beams.tokens[beam].empty() ? options.bos_id() : beams.tokens[beam].back());
      }
    }
    live = std::move(left);
    if (!search.go_on(length, search.sources - static_cast<int64_t>(live.size()))) break;
    if (!live.empty()) search.continue_with(rows, tokens);
  }

  Hypotheses result;
  for (Beams& beams : sources) {
    for (int64_t beam = 0; beam < width && !beams.done; ++beam) {  // the caller stopped the search
      if (beams.log_probabilities[beam] == kDead) continue;
      const auto length = static_cast<int64_t>(beams.tokens[beam].size());
      const double score = search.score(beams.log_probabilities[beam], length);
      finish(beams, {std::move(beams.tokens[beam]), score});
    }
    beams.finished.resize(std::min<size_t>(beams.finished.size(), options.num_return_sequences()));
    result.push_back(std::move(beams.finished));
  }
  return result;
}

}  // namespace posenc
