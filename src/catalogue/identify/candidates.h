#pragma once

// Guesses, from the table, the parameters that a preset may have been given.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catalogue/identify/candidate.h"
#include "catalogue/identify/estimate.h"

namespace posenc::identification {

class CandidateGenerator {
 public:
  using Visit = std::function<void(const Candidate&)>;

  CandidateGenerator(const Preset& preset, const TableView& view, bool edited, const Visit& visit);
  void all();

 private:
  // candidates.cpp: shared by both kinds
  bool is_zero(int64_t row) const;
  bool fits(const SinusoidOptions& o) const;
  std::optional<Candidate> make(int64_t dim, const PresetParams& params) const;
  void try_candidate(Candidate c) const;
  void visit(Candidate c) const;

  // candidates_line.cpp: one axis, or points
  void line(int64_t dim, PresetParams params);
  void layouts(const Candidate& c) const;
  void try_moved_starts(const Candidate& own) const;
  Candidate with_refit_parameters(Candidate c) const;

  // candidates_grid.cpp
  std::vector<PresetParams> boxes() const;
  std::vector<std::vector<int64_t>> grids() const;
  void grid(int64_t dim, const PresetParams& box) const;
  std::pair<int64_t, int64_t> longest(const SinusoidOptions& o) const;
  std::optional<Rates> grid_rates(const SinusoidOptions& o) const;

  const Preset& preset_;
  const TableView& view_;
  const bool edited_;
  const Visit& visit_;
  at::Tensor sample_;             // (N, C) sampled rows that are not zero, float64
  std::vector<int64_t> numbers_;  // their indices
  int64_t first_ = 0;             // the first row that is not zero
};

/// Whether the preset has this parameter.
bool takes(const Preset& preset, const char* name);
/// The name of the preset's parameter for the base, or null.
const char* base_name(const Preset& preset);

/// The number of consecutive rows that rates are estimated from.
inline constexpr int64_t kRateRows = 64;

}  // namespace posenc::identification
