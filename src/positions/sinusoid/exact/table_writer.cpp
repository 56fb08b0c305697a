// Three writers over one kind of row, with the parts that they share.
#include "positions/sinusoid/exact/table_writer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/platform/memory.h"
#include "core/position_limit.h"

namespace posenc::exact {
namespace {

constexpr int64_t kSteps =
    64;  // rows per block: the step rows of D = 1024 fill 512 KB, half of a typical L2
constexpr int kLengths = 36;  // bounds are kept for spans 1, 2, 4 ... 2^35

int64_t element_size(Format format) {
  return format == Format::Float64 ? 8 : format == Format::Float32 ? 4 : 2;
}

double decide(const void* frequencies, int64_t k, bool cosine, double position, Format format) {
  return static_cast<const Frequencies*>(frequencies)->entry(k, cosine, position, format);
}

// A scratch row and its bounds: one per call, so that the writers stay const and free of
// thread-local state.
struct Scratch {
  Doubles memory;
  double* row;
  double* bounds;
  explicit Scratch(const RowWriter& rows)
      : memory(rows.row_size() + rows.frequencies.view().padded),
        row(memory.data()),
        bounds(row + rows.row_size()) {}
};

}  // namespace

Doubles::Doubles(int64_t count) {
  constexpr size_t huge = size_t{2} << 20;
  const size_t alignment = static_cast<size_t>(count) * 8 >= 2 * huge ? huge : 64;
  bytes_ = static_cast<int64_t>((static_cast<size_t>(count) * 8 + alignment - 1) / alignment *
                                alignment);
  void* memory =
      std::aligned_alloc(alignment, static_cast<size_t>(bytes_) + (bytes_ == 0 ? alignment : 0));
  if (memory == nullptr) throw std::bad_alloc();
  if (alignment == huge) platform::advise_huge_pages(memory, static_cast<size_t>(bytes_));
  memory_.reset(static_cast<double*>(memory));
}
void Doubles::Free::operator()(double* p) const { std::free(p); }

RowWriter::RowWriter(const Frequencies& frequencies_in, Format format_in,
                     const SincosKernels& use_in)
    : frequencies(frequencies_in),
      format(format_in),
      use(use_in),
      pairs_(format_in == Format::Float64),
      row_size_((pairs_ ? 4 : 2) * frequencies_in.view().padded),
      bounds_(kLengths * frequencies_in.view().padded) {
  set_widening(1.0);
}

void RowWriter::set_widening(double factor) {
  widening_ = factor;
  const FrequencyView& f = frequencies.view();
  for (int length = 0; length < kLengths; ++length)
    use.bounds(f.reach, f.padded, std::ldexp(1.0, length), bound(),
               bounds_.data() + length * f.padded);
}

void RowWriter::make_row(double whole, double part, double* out) const {
  (pairs_ ? use.row_pair : use.row)(frequencies.view(), whole, part, out);
}

const double* RowWriter::bounds_for(double span) const {
  int length = 0;
  std::frexp(span, &length);
  return bounds_.data() + (length < kLengths ? length : kLengths - 1) * frequencies.view().padded;
}

void RowWriter::own_bounds(double span, double* out) const {
  use.bounds(frequencies.view().turns_reach, frequencies.view().padded, span, bound(), out);
}

void RowWriter::write(const double* first, const double* second, const double* bounds,
                      double position, const Destination& to, int64_t row, int64_t count,
                      double step) const {
  RowsRequest request;
  request.first = first;
  request.second = second;
  request.second_stride = row_size_;
  request.count = count;
  request.sin_bound = bounds;
  request.cos_bound = bound();
  request.padded = frequencies.view().padded;
  request.layout = &to.layout;
  request.format = format;
  request.out = static_cast<char*>(to.data) + row * to.layout.row_stride * element_size(format);
  request.ziv_fallback = decide;
  request.context = &frequencies;
  request.position = position;
  request.position_step = step;
  request.quick = widening_ == 1.0 && !frequencies.view().guarded &&
                  std::fabs(position) < static_cast<double>(kPositionLimit);
  request.stream = to.stream;
  (pairs_ ? use.write_pair : use.write)(request);
}

void RowWriter::write_direct(double position, bool real, const Destination& to, int64_t row,
                             double* scratch_row, double* scratch_bounds,
                             const double* unit) const {
  // Beyond the kernels' range, a row of NaNs leaves every entry to the Ziv fallback.
  const bool inside = std::fabs(position) < static_cast<double>(kPositionLimit);
  const double whole = inside ? std::nearbyint(position) : NAN;
  make_row(whole, inside ? position - whole : 0.0, scratch_row);
  const double* bounds = scratch_bounds;
  if (real)
    own_bounds(2 * std::fabs(position), scratch_bounds);
  else
    bounds = bounds_for(std::fabs(position));
  write(scratch_row, unit, bounds, position, to, row);
}

void RowWriter::finish(const Destination& to) const {
  if (to.stream) use.stream_end();
}

TableWriter::TableWriter(const Frequencies& frequencies, const Positions& positions, int64_t rows,
                         Format format, const SincosKernels& use)
    : rows_(frequencies, format, use), positions_(positions) {
  const bool sequence = positions.integers == nullptr && positions.reals == nullptr;
  if (sequence && rows > 0) {
    Wide const last =
        static_cast<Wide>(positions.start) + static_cast<Wide>(positions.step) * (rows - 1);
    if (std::llabs(positions.start) >= kPositionLimit || last >= kPositionLimit ||
        last <= -kPositionLimit)
      throw std::invalid_argument("[exact table] positions must lie in (-2^31, 2^31); start " +
                                  std::to_string(positions.start) + ", step " +
                                  std::to_string(positions.step) + ", rows " +
                                  std::to_string(rows));
  }
  const int64_t steps = !sequence ? 1 : rows < kSteps ? rows : kSteps;
  steps_ = Doubles(steps * rows_.row_size());
  for (int64_t i = 0; i < steps; ++i)
    rows_.make_row(i == 0 ? 0.0 : static_cast<double>(i * positions.step), 0.0,
                   steps_.data() + i * rows_.row_size());
}

void TableWriter::write(int64_t begin, int64_t end, const Destination& to) const {
  const Scratch scratch(rows_);
  if (positions_.integers == nullptr && positions_.reals == nullptr) {
    write_sequence(begin, end, to, scratch.row);
  } else {
    const bool real = positions_.reals != nullptr;
    for (int64_t row = begin; row < end; ++row) {
      const double position =
          real ? positions_.reals[row] : static_cast<double>(positions_.integers[row]);
      rows_.write_direct(position, real, to, row, scratch.row, scratch.bounds, steps_.data());
    }
  }
  rows_.finish(to);
}

// Blocks start at absolute rows that are multiples of 64, so that they do not depend on how the
// rows are split.
void TableWriter::write_sequence(int64_t begin, int64_t end, const Destination& to,
                                 double* anchor) const {
  const double step = static_cast<double>(positions_.step);
  for (int64_t row = begin; row < end;) {
    const int64_t within = row % kSteps;
    const int64_t count = std::min(kSteps - within, end - row);
    const double first = static_cast<double>(positions_.start + (row - within) * positions_.step);
    rows_.make_row(first, 0.0, anchor);
    const double* bounds =
        rows_.bounds_for(std::fabs(first) + static_cast<double>(kSteps) * std::fabs(step));
    rows_.write(anchor, steps_.data() + within * rows_.row_size(), bounds,
                first + static_cast<double>(within) * step, to, row, count, step);
    row += count;
  }
}

FactoredRows::FactoredRows(const Frequencies& frequencies, int64_t range, Format format,
                           int low_bits, const SincosKernels& use)
    : rows_(frequencies, format, use) {
  if (range < 1 || range > kPositionLimit)
    throw std::invalid_argument("[factored rows] range must be in [1, 2^31], got " +
                                std::to_string(range));
  low_bits_ = low_bits;
  if (low_bits < 0) {
    // About the square root of the range; fewer low rows, to keep them in L2, as long as all rows
    // together fit in 24 MB.
    const int64_t row_bytes = rows_.row_size() * 8;
    const auto rows_for = [&](int bits) { return (int64_t{1} << bits) + (range >> bits) + 1; };
    low_bits_ = 0;
    while ((int64_t{1} << (2 * low_bits_)) < range) ++low_bits_;
    while (low_bits_ > 6 && (row_bytes << low_bits_) > (1 << 20) &&
           rows_for(low_bits_ - 1) * row_bytes <= (24 << 20))
      --low_bits_;
  }
  const int64_t low_rows = int64_t{1} << low_bits_;
  high_rows_ = (range + low_rows - 1) / low_rows;
  low_ = Doubles(low_rows * rows_.row_size());
  high_ = Doubles(high_rows_ * rows_.row_size());
  for (int64_t i = 0; i < low_rows; ++i)
    rows_.make_row(static_cast<double>(i), 0.0, low_.data() + i * rows_.row_size());
  for (int64_t i = 0; i < high_rows_; ++i)
    rows_.make_row(static_cast<double>(i << low_bits_), 0.0, high_.data() + i * rows_.row_size());
}

// Scattered rows of a set far larger than L2 are written in the order of their high rows (a
// counting sort): each high row is then read once, and only the low rows, few enough for L2, are
// accessed at random. The order of writing does not affect the result.
std::vector<int32_t> FactoredRows::order(const Positions& positions, int64_t begin,
                                         int64_t end) const {
  constexpr int64_t kWorthwhile = 2048, kL2 = 1 << 20;
  const int64_t n = end - begin;
  if (positions.integers == nullptr || n < kWorthwhile || n > INT32_MAX || bytes() < 2 * kL2)
    return {};
  const auto bucket = [&](int64_t row) {  // rows without a stored high row come last
    const int64_t high = positions.integers[row] >> low_bits_;
    return static_cast<size_t>(high < 0 || high >= high_rows_ ? high_rows_ : high);
  };
  std::vector<int32_t> next(static_cast<size_t>(high_rows_) + 2, 0), rows(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) ++next[bucket(begin + i) + 1];
  for (size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  for (int64_t i = 0; i < n; ++i)
    rows[static_cast<size_t>(next[bucket(begin + i)]++)] = static_cast<int32_t>(i);
  return rows;
}

void FactoredRows::write(const Positions& positions, int64_t begin, int64_t end,
                         const Destination& to) const {
  const Scratch scratch(rows_);
  const std::vector<int32_t> sorted = order(positions, begin, end);
  int64_t made = INT64_MIN;  // the high row that scratch holds, for neighbours to share
  for (int64_t i = begin; i < end; ++i) {
    const int64_t row = sorted.empty() ? i : begin + sorted[static_cast<size_t>(i - begin)];
    const bool real = positions.reals != nullptr;
    const int64_t position = real ? 0
                             : positions.integers != nullptr
                                 ? positions.integers[row]
                                 : positions.start + row * positions.step;
    if (real || position <= -kPositionLimit || position >= kPositionLimit) {
      const double any = real ? positions.reals[row] : static_cast<double>(position);
      rows_.write_direct(any, real, to, row, scratch.row, scratch.bounds, low_.data());
      made = INT64_MIN;
      continue;
    }
    const int64_t high = position >> low_bits_;  // rounds down, for negative positions too
    const int64_t low = position - high * (int64_t{1} << low_bits_);
    const bool stored = high >= 0 && high < high_rows_;
    const double* first = stored ? high_.data() + high * rows_.row_size() : scratch.row;
    if (!stored) {
      if (made != high)
        rows_.make_row(static_cast<double>(high * (int64_t{1} << low_bits_)), 0.0, scratch.row);
      made = high;
    }
    const double span =
        static_cast<double>(std::llabs(high) + 1) * static_cast<double>(int64_t{1} << low_bits_);
    rows_.write(first, low_.data() + low * rows_.row_size(), rows_.bounds_for(span),
                static_cast<double>(position), to, row);
  }
  rows_.finish(to);
}

}  // namespace posenc::exact
