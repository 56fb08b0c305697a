#include "catalogue/identify/table_view.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "catalogue/identify/estimate.h"

namespace posenc::identification {
namespace {

constexpr int64_t kFewestRows = 3, kFewestChannels = 4;
constexpr int64_t kProbe = 4096;     // elements that suffice to reject most tensors
constexpr double kCrest = 1.9;       // sqrt(2), and room for the slow channels of a short table
constexpr double kNoise = 1.25;      // of the amplitude, including what training may add
constexpr double kNormSpread = 0.6;  // relative, of rows whose sines and cosines are unpaired
constexpr double kPairNoise = 0.4;   // of a pair's sum of squares: 5 sigma of what training adds
constexpr double kPairShare = 0.6;   // of the channels; the others are coordinates or cut off

// Whether the whole table has mean 0 and deviation 0.1, as PatchTSMixer's.
bool standardized(const at::Tensor& table) {
  const at::Tensor x = table.to(at::kDouble);
  return std::abs(x.mean().item<double>()) < 1e-3 && std::abs(x.std().item<double>() - 0.1) < 1e-3;
}

std::string shape_text(at::IntArrayRef sizes, const std::vector<std::string>& letters) {
  std::string text;
  size_t next = 0;
  for (const int64_t size : sizes) {
    text += (text.empty() ? "" : ", ") + (size == 1 ? std::string("1") : letters[next++]);
  }
  return "(" + text + ")";
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

std::vector<double> to_vector(const at::Tensor& t) {
  const at::Tensor x = t.to(at::kDouble).contiguous();
  return {x.const_data_ptr<double>(), x.const_data_ptr<double>() + x.numel()};
}

// Whether x (rows, channels), without rows of zeros, can be sines and cosines: all rows have one
// norm.
bool norms_fit(const at::Tensor& x, int64_t channels) {
  const at::Tensor used = x.abs().amax(0) > 0;
  const double count = static_cast<double>(used.sum().item<int64_t>());
  if (count < 2) return false;
  const auto norms = to_vector(x.square().sum(1));
  const double middle = quantile(norms, 0.5), scale = std::sqrt(2 * middle / count);
  const double known = scale > 0.5 ? 1.0 : 1 / std::sqrt(static_cast<double>(channels));
  if (scale < known / kNoise || scale > known * kNoise) return false;
  if (x.abs().max().item<double>() > known * kNoise) return false;
  const double room = kNormSpread * middle + known * known;
  return std::all_of(norms.begin(), norms.end(),
                     [&](double norm) { return std::abs(norm - middle) <= room; });
}

// Whether most channels of x (rows, channels) have a partner at a distance that occurs in some
// layout, such that the squares of both add up to the same number everywhere.
bool has_pairs(const at::Tensor& x) {
  const int64_t c = x.size(1);
  const at::Tensor square = x.square();
  at::Tensor found = at::zeros({c}, at::TensorOptions(at::kBool));
  const double sum = 2 * square.sum().item<double>() /
                     static_cast<double>(x.size(0) * (x.abs().amax(0) > 0).sum().item<int64_t>());
  std::set<int64_t> distances = {1, 2, 3};
  for (const int64_t parts : {2, 4, 6, 8}) {
    for (int64_t off = -1; off <= 1; ++off) distances.insert(c / parts + off);
  }
  distances.insert(3 * c / 16);
  for (const int64_t d : distances) {
    if (d < 1 || d >= c) continue;
    const at::Tensor apart = (square.slice(1, 0, c - d) + square.slice(1, d) - sum).abs();
    const at::Tensor fits = apart.amax(0) <= kPairNoise * sum;
    found.slice(0, 0, c - d).logical_or_(fits);
    found.slice(0, d).logical_or_(fits);
  }
  const auto filled = (x.abs().amax(0) > 0).sum().item<int64_t>();
  return static_cast<double>(found.sum().item<int64_t>()) >=
         kPairShare * static_cast<double>(filled);
}

}  // namespace

at::Tensor sample_rows(int64_t count) {
  std::set<int64_t> rows;
  for (int64_t i = 0; i < 6; ++i) {
    rows.insert(std::min(i, count - 1));
    rows.insert(std::max<int64_t>(0, count - 1 - i / 2));
  }
  for (int64_t i = 1; i < 12; ++i) rows.insert(count * i / 12 + (i % 2 ? 0 : (count > 48)));
  return at::tensor(std::vector<int64_t>(rows.begin(), rows.end()));
}

int64_t count_table_views(at::IntArrayRef sizes) {
  std::vector<int64_t> axes;
  for (const int64_t size : sizes) {
    if (size == 0) return 0;
    if (size > 1) axes.push_back(size);
  }
  if (axes.size() < 2 || axes.size() > 4) return 0;
  int64_t rows = 1, columns = 1;
  for (size_t i = 1; i < axes.size(); ++i) columns *= axes[i];
  for (size_t i = 0; i + 1 < axes.size(); ++i) rows *= axes[i];
  return (rows >= kFewestRows && axes.back() >= kFewestChannels) +
         (columns >= kFewestRows && axes.front() >= kFewestChannels);
}

bool may_be_sinusoid(const at::Tensor& tensor) {
  at::Tensor flat = tensor;
  if (tensor.dim() > 1 && tensor.size(-1) % 2 == 1 && tensor.size(-1) > 6) {
    flat = flat.slice(-1, 3);  // may hold raw coordinates
  }
  if (flat.is_contiguous()) {
    flat = flat.reshape({-1});
  } else {
    flat = flat.reshape({-1, flat.size(-1)});
    flat = flat.index_select(0, sample_rows(flat.size(0))).reshape({-1});
  }
  if (flat.numel() > kProbe) {
    const auto at_rows = at::linspace(0, static_cast<double>(flat.numel() - 1), kProbe,
                                      at::TensorOptions(at::kDouble));
    flat = flat.index_select(0, at_rows.to(at::kLong));
  }
  const at::Tensor x = flat.to(at::kDouble);
  const double square = x.square().mean().item<double>(), most = x.abs().max().item<double>();
  if (!std::isfinite(square) || square == 0) return false;
  if (most <= kCrest * std::sqrt(square)) return true;
  const double mean = x.mean().item<double>();  // exceptions: rows of zeros, or a table with mean 0
  const bool sparse = (x == 0).sum().item<int64_t>() * 4 > x.numel() && tensor.numel() < (1 << 20);
  return (sparse && most <= kNoise) ||
         (std::abs(mean) < 0.03 && std::abs(std::sqrt(square) - 0.1) < 0.03 && most < 0.5);
}

at::Tensor to_narrowest_dtype(const at::Tensor& tensor) {
  const at::Tensor last = tensor.select(0, -1).contiguous();  // most likely to need full width
  for (const auto type : {at::kBFloat16, at::kHalf, at::kFloat}) {
    if (c10::elementSize(type) >= c10::elementSize(tensor.scalar_type())) break;
    if (!at::equal(last.to(type).to(last.scalar_type()), last)) continue;
    if (at::equal(tensor.to(type).to(tensor.scalar_type()), tensor)) return tensor.to(type);
  }
  return tensor.scalar_type() == at::kDouble &&
                 at::equal(tensor.to(at::kFloat).to(at::kDouble), tensor)
             ? tensor.to(at::kFloat)
             : tensor;
}

std::vector<TableView> table_views(const at::Tensor& tensor) {
  at::Tensor t = tensor.squeeze();
  const auto sizes = tensor.sizes();
  std::vector<TableView> result;
  const auto add = [&](const at::Tensor& rows, std::vector<int64_t> extents,
                       const std::vector<std::string>& letters) {
    if (rows.size(0) < kFewestRows || rows.size(1) < kFewestChannels) return;
    result.push_back({rows, std::move(extents), shape_text(sizes, letters), 0, {}});
  };
  if (t.dim() == 2) {
    add(t, {}, {"L", "D"});
    add(t.t(), {}, {"D", "L"});
  } else if (t.dim() == 3) {
    const at::Tensor cells = t.flatten(1).t();
    add(t.flatten(0, 1), {t.size(0), t.size(1)}, {"H", "W", "D"});
    add(cells, {t.size(1), t.size(2)}, {"D", "H", "W"});
    const bool batch = at::equal(t.select(0, 0), t.select(0, 1)) &&
                       at::equal(t.select(0, 0).unsqueeze(0).expand_as(t), t);
    if (batch) add(t.select(0, 0), {}, {"B", "L", "D"});
  } else if (t.dim() == 4) {
    add(t.flatten(0, 2), {t.size(0), t.size(1), t.size(2)}, {"T", "H", "W", "D"});
    add(t.flatten(1).t(), {t.size(1), t.size(2), t.size(3)}, {"D", "T", "H", "W"});
  }
  return result;
}

std::optional<TableView> without_learned_rows(const TableView& view) {
  TableView result = view;
  const int64_t count = view.rows.size(0), channels = view.rows.size(1);
  const at::Tensor index = sample_rows(count);
  const at::Tensor x = view.rows.index_select(0, index).to(at::kDouble);
  const at::Tensor filled = x.abs().amax(1) > 0;
  if (filled.sum().item<int64_t>() < kFewestRows) return std::nullopt;

  // Leading raw coordinates are skipped; leading rows may be learned.
  for (const int64_t raw : {0, 1, 3}) {
    if (raw > 0 && (channels % 2 == 0 || channels < raw + 4)) break;
    // A leading row of zeros is that of a token or of padding, not a learned one.
    const int64_t most = filled[0].item<bool>() ? 2 : 0;
    for (int64_t leading = 0; leading <= most && count - leading >= kFewestRows; ++leading) {
      const at::Tensor here = filled.slice(0, leading).nonzero().reshape({-1});
      const at::Tensor kept = x.slice(0, leading).index_select(0, here);
      if (kept.size(0) < 2 || !norms_fit(kept.slice(1, raw), channels)) continue;
      result.leading = leading;
      result.paired = has_pairs(kept.slice(1, raw));
      result.rows = view.rows.slice(0, leading).contiguous();
      const at::Tensor zero = result.rows.eq(0).all(1).nonzero().reshape({-1});
      for (const double row : to_vector(zero)) result.zeros.push_back(static_cast<int64_t>(row));
      if (result.zeros.size() > 2) return std::nullopt;
      if (result.extents.empty()) {
        auto found = periods(result.rows.slice(0, !result.zeros.empty() && result.zeros[0] == 0));
        if (found.size() > 1) result.extents = std::move(found);
      }
      return result;
    }
  }
  if (channels % 2 == 0 && standardized(view.rows)) {
    result.rows = view.rows.contiguous();
    return result;
  }
  return std::nullopt;
}

}  // namespace posenc::identification
