// Exact tables from rows: every entry is the correctly rounded value of the formula, whatever the
// instruction set, the number of threads and the split of the rows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/sincos_types.h"
#include "positions/sinusoid/exact/frequencies.h"

namespace posenc::exact {

// Uninitialised doubles, aligned to 64 bytes, with a hint for huge pages if there are many.
class Doubles {
 public:
  Doubles() = default;
  explicit Doubles(int64_t count);
  double* data() { return memory_.get(); }
  const double* data() const { return memory_.get(); }
  int64_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(double* p) const;
  };
  std::unique_ptr<double[], Free> memory_;
  int64_t bytes_ = 0;
};

struct Destination {
  void* data = nullptr;  // row 0
  RowLayout layout;
  // Use non-temporal stores, which pay off from max(16 MB, half of the last-level cache) on.
  bool stream = false;
};

// The part that the writers share: the format's kind of row, and the sine's error bounds for
// positions of every magnitude.
class RowWriter {
 public:
  RowWriter(const Frequencies& frequencies, Format format, const SincosKernels& use);
  int64_t row_size() const { return row_size_; }  // doubles
  bool pairs() const { return pairs_; }
  // For tests: wider bounds send more entries to the Ziv fallback and must not change a bit.
  void set_widening(double factor);

  void make_row(double whole, double part, double* out) const;
  // The bounds where the |angle| of either row is below reach * span.
  const double* bounds_for(double span) const;
  void own_bounds(double span, double* out) const;  // for real positions
  // Rows row..row+count-1 have the angles first + second[i] and the positions position + i * step.
  void write(const double* first, const double* second, const double* bounds, double position,
             const Destination& to, int64_t row, int64_t count = 1, double step = 0.0) const;
  // Writes the row of a single position without adding angles: `unit` is the row of angle 0.
  void write_direct(double position, bool real, const Destination& to, int64_t row,
                    double* scratch_row, double* scratch_bounds, const double* unit) const;
  void finish(const Destination& to) const;

  const Frequencies& frequencies;
  const Format format;
  const SincosKernels& use;

 private:
  double bound() const { return widening_ * (pairs_ ? kBoundPair : kBound64); }
  bool pairs_;
  int64_t row_size_;
  Doubles bounds_;
  double widening_ = 1.0;
};

// Writes rows of positions in sequence, or of given ones. Const methods may run concurrently.
class TableWriter {
 public:
  // frequencies must outlive this object. Throws std::invalid_argument for a sequence that leaves
  // (-2^31, 2^31).
  TableWriter(const Frequencies& frequencies, const Positions& positions, int64_t rows,
              Format format, const SincosKernels& use = kernels::chosen().sincos);
  // Rows [begin, end). Positions that are not finite give NaN.
  void write(int64_t begin, int64_t end, const Destination& to) const;
  RowWriter& rows() { return rows_; }

 private:
  void write_sequence(int64_t begin, int64_t end, const Destination& to, double* anchor) const;
  RowWriter rows_;
  Positions positions_;
  Doubles steps_;  // rows of the angles 0, step, 2*step ... 63*step
};

// Any position below 2^31 from two small sets of rows: multiples of 1 below 2^s, and multiples of
// 2^s. High rows that are negative or beyond the stored range are computed on demand.
class FactoredRows {
 public:
  // Stored rows alone serve the first `range` positions: about 2*sqrt(range) rows.
  FactoredRows(const Frequencies& frequencies, int64_t range, Format format, int low_bits = -1,
               const SincosKernels& use = kernels::chosen().sincos);
  void write(const Positions& positions, int64_t begin, int64_t end, const Destination& to) const;
  int64_t bytes() const { return low_.bytes() + high_.bytes(); }
  RowWriter& rows() { return rows_; }

 private:
  std::vector<int32_t> order(const Positions& positions, int64_t begin, int64_t end) const;
  RowWriter rows_;
  int low_bits_;
  int64_t high_rows_;
  Doubles low_;
  Doubles high_;
};

}  // namespace posenc::exact
