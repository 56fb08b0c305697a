#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "inference/generate/step_model.h"

namespace posenc {
namespace {

constexpr float kDead = -std::numeric_limits<float>::infinity();
// What transformers gives to beams that do not live: a candidate that is worse becomes none, unless
// there is nothing better.
constexpr float kLeast = -1e9F;

// The beams of one source, sorted by log probability.
struct Beams {
  std::vector<std::vector<int64_t>> columns;
  std::vector<float> log_probabilities;
  std::vector<double> of_choices;  // Hypothesis::log_probability
  std::vector<TargetAttention> attention;
  std::vector<Hypothesis> finished;  // at most one per beam, best first
  bool done = false;
};

struct Candidate {
  float log_probability;
  int64_t beam, token;
  double of_choice;  // the token's term of Hypothesis::log_probability, or 0
};

// The beams before the first token: all are equal, so the search starts from one.
Beams first_beams(const SearchPlan& plan, int64_t source) {
  Beams beams;
  const auto width = static_cast<size_t>(plan.rows_per_source);
  beams.columns.assign(width, plan.first_columns(source));
  beams.log_probabilities.assign(width, kDead);
  beams.log_probabilities[0] = 0.0F;
  beams.of_choices.resize(width);
  beams.attention.resize(width);
  return beams;
}

void finish(Beams& beams, Hypothesis hypothesis) {
  const size_t most = beams.columns.size();
  auto& finished = beams.finished;
  const auto worse = std::find_if(finished.begin(), finished.end(), [&](const Hypothesis& one) {
    return one.score < hypothesis.score;
  });
  finished.insert(worse, std::move(hypothesis));
  if (finished.size() > most) finished.pop_back();
}

// Replaces the live beams with the best candidates, sorted. `origin` receives the beam that each
// one extends. All of them end at max_new_tokens.
void advance(const Search& search, const std::vector<Candidate>& candidates, int64_t source,
             int64_t length, Beams& beams, std::vector<int64_t>& origin) {
  const size_t width = beams.columns.size();
  Beams next;
  next.finished = std::move(beams.finished);
  // Those of dead beams have no meaning.
  next.columns.assign(width, {search.plan.prefixes[source].front()});
  next.log_probabilities.assign(width, kDead);
  next.of_choices.resize(width);
  next.attention.resize(width);
  origin.assign(width, 0);
  size_t live = 0, rank = 0;
  const bool has_better = !next.finished.empty() || candidates.front().log_probability > kLeast;
  const float least = has_better ? kLeast : kDead;
  for (const Candidate& candidate : candidates) {
    if (candidate.log_probability <= least || live == width) break;
    auto columns = beams.columns[candidate.beam];
    columns.push_back(candidate.token);
    const double of_choices = beams.of_choices[candidate.beam] + candidate.of_choice;
    if (search.ends(source, columns, length)) {
      // One that is not among the best `width` would not have become a beam either.
      if (rank++ < width) {
        const auto& attention = beams.attention[candidate.beam];
        const double score = search.score(candidate.log_probability, length, attention);
        finish(next, search.hypothesis(source, columns, score, attention, of_choices));
      }
      continue;
    }
    ++rank;
    next.columns[live] = std::move(columns);
    next.log_probabilities[live] = candidate.log_probability;
    next.of_choices[live] = of_choices;
    next.attention[live] = beams.attention[candidate.beam];
    origin[live++] = candidate.beam;
  }
  beams = std::move(next);
}

// Whether the search can stop, according to EarlyStopping.
bool is_done(const Search& search, const Beams& beams, int64_t source, int64_t length) {
  const float best = beams.log_probabilities.front();
  if (best == kDead) return true;
  if (beams.finished.size() < beams.columns.size()) return false;
  const GenerateOptions& options = search.options();
  if (options.early_stopping() == EarlyStopping::WhenFull) return true;
  const double worst = beams.finished.back().score;
  if (options.early_stopping() == EarlyStopping::Never) {
    // What a beam does not attend to yet, it may attend to later.
    const int64_t at = options.length_penalty() > 0 ? search.plan.most[source] : length;
    return search.best_score(best, at) <= worst;
  }
  for (size_t beam = 0; beam < beams.columns.size(); ++beam) {
    const float own = beams.log_probabilities[beam];
    if (own > kDead && search.score(own, length, beams.attention[beam]) > worst) return false;
  }
  return true;
}

// The best candidates of each source: more than the beams, as some of them may end.
struct Best {
  torch::Tensor scores, indices;
  torch::Tensor of_choices;  // of the candidates, or undefined
  int64_t vocab;
  std::vector<Candidate> of(size_t source) const {
    const auto row = static_cast<int64_t>(source) * scores.size(1);
    std::vector<Candidate> candidates;
    for (int64_t c = 0; c < scores.size(1); ++c) {
      const int64_t index = indices.const_data_ptr<int64_t>()[row + c];
      const double of_choice =
          of_choices.defined() ? of_choices.const_data_ptr<float>()[row + c] : 0.0;
      candidates.push_back(
          {scores.const_data_ptr<float>()[row + c], index / vocab, index % vocab, of_choice});
    }
    return candidates;
  }
};

Best best_candidates(Search& search, const std::vector<Beams>& sources,
                     const std::vector<int64_t>& live, int64_t step) {
  const int64_t width = search.plan.rows_per_source;
  std::vector<TargetRow> rows;
  std::vector<float> before;
  for (const int64_t source : live) {
    const Beams& beams = sources[source];
    const bool chooses = search.next_of_prefix(source, beams.columns.front()) == nullptr;
    for (int64_t beam = 0; beam < width; ++beam) {
      const bool is_live = chooses && beams.log_probabilities[beam] > kDead;
      rows.push_back({source, is_live ? &beams.columns[beam] : nullptr});
      before.push_back(is_live ? beams.log_probabilities[beam] : kDead);
    }
  }
  const auto [logits, sum] = search.step(rows);
  const auto rest = sum.rest.cpu();
  for (size_t row = 0; row < rows.size(); ++row)
    if (rows[row].columns != nullptr && std::isnan(rest.const_data_ptr<float>()[row]))
      search.check_choice(rest.const_data_ptr<float>()[row], step, rows[row].source);
  const int64_t vocab = logits.size(1);
  // Each beam may end with any of these, or by the criteria, and `width` live beams must remain.
  const auto ends = static_cast<int64_t>(search.options().eos_ids().size());
  const int64_t candidates = width * std::max<int64_t>(2, 1 + ends);
  const auto top =
      functional::beam_topk(logits, sum, torch::tensor(before, torch::kFloat).to(logits.device()),
                            width, std::min(candidates, width * vocab));
  torch::Tensor of_choices;
  if (search.options().return_log_probability()) {
    const auto first = torch::arange(top.indices.size(0), top.indices.options()) * width;
    const auto from = (top.indices.div(vocab, "floor") + first.unsqueeze(1)).view({-1});
    const auto all = functional::log_sum_exp(logits);
    const auto of_all = (logits.view({-1, width * vocab}).gather(1, top.indices).view({-1}) -
                         all.largest.index_select(0, from)) -
                        all.rest.index_select(0, from);
    of_choices = of_all.cpu();
  }
  return {top.scores.cpu().contiguous(), top.indices.cpu().contiguous(), of_choices, vocab};
}

}  // namespace

Hypotheses beam_search(Search& search) {
  const SearchPlan& plan = search.plan;
  const int64_t width = plan.rows_per_source;
  std::vector<Beams> sources;
  for (int64_t source = 0; source < plan.sources; ++source)
    sources.push_back(first_beams(plan, source));
  std::vector<int64_t> live(plan.sources);  // the sources still being decoded
  std::iota(live.begin(), live.end(), 0);
  for (int64_t step = 1; !live.empty(); ++step) {
    const Best best = best_candidates(search, sources, live, step);
    std::vector<int64_t> left, rows, tokens, origin;
    for (size_t i = 0; i < live.size(); ++i) {
      const int64_t source = live[i];
      Beams& beams = sources[source];
      for (int64_t beam = 0; beam < width; ++beam)
        search.attend(static_cast<int64_t>(i) * width + beam, beams.attention[beam]);
      if (const auto* forced = search.next_of_prefix(source, beams.columns.front())) {
        for (auto& columns : beams.columns) columns.push_back(*forced);
        origin.resize(width);
        std::iota(origin.begin(), origin.end(), 0);
      } else {
        const auto candidates = best.of(i);
        if (beams.finished.empty())
          search.check_choice(candidates.front().log_probability, step, source);
        const auto length =
            static_cast<int64_t>(beams.columns.front().size() + 1 - plan.prefixes[source].size());
        advance(search, candidates, source, length, beams, origin);
        beams.done = is_done(search, beams, source, length);
      }
      if (beams.done) continue;
      left.push_back(source);
      for (int64_t beam = 0; beam < width; ++beam) {
        rows.push_back(static_cast<int64_t>(i) * width + origin[beam]);
        tokens.push_back(beams.columns[beam].back());
      }
    }
    live = std::move(left);
    if (!search.go_on(step, plan.sources - static_cast<int64_t>(live.size()))) break;
    if (!live.empty()) search.continue_with(rows, tokens);
  }

  Hypotheses result;
  for (int64_t source = 0; source < plan.sources; ++source) {
    Beams& beams = sources[source];
    for (int64_t beam = 0; beam < width && !beams.done; ++beam) {  // the caller stopped the search
      if (beams.log_probabilities[beam] == kDead) continue;
      const auto& columns = beams.columns[beam];
      const auto length = static_cast<int64_t>(search.generated(source, columns).size());
      if (length == 0) continue;  // still in its prefix
      const auto& attention = beams.attention[beam];
      const double score = search.score(beams.log_probabilities[beam], length, attention);
      finish(beams, search.hypothesis(source, columns, score, attention, beams.of_choices[beam]));
    }
    beams.finished.resize(
        std::min<size_t>(beams.finished.size(), plan.options.num_return_sequences()));
    result.push_back(std::move(beams.finished));
  }
  return result;
}

}  // namespace posenc
