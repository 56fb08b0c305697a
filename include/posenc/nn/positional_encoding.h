#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/pimpl.h>

#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/core/growth_lock.h"
#include "posenc/core/weight_notes.h"
#include "posenc/sinusoid/factored_table.h"
#include "posenc/sinusoid/options.h"

namespace posenc {

/// Where a module has its sinusoidal rows from.
enum class Storage {
  Table,     ///< a buffer of max_len rows, in PyTorch's state_dict
  Factored,  ///< two small tables, exact, for any position below 2^31; nothing in the state_dict
  None,      ///< nothing: the recipe's rows are computed in each forward, up to position 2^31
};

struct PositionalEncodingOptions {
  PositionalEncodingOptions(int64_t d_model, int64_t max_len = 5000)
      : d_model_(d_model), max_len_(max_len), sinusoid_(d_model) {}

  TORCH_ARG(int64_t, d_model);
  /// Rows of the table, in positions. With Storage::Factored, how many are served without making
  /// more on demand.
  TORCH_ARG(int64_t, max_len);
  TORCH_ARG(Storage, storage) = Storage::Table;
  /// Probability with which an element of the sum is zeroed in training, in [0, 1).
  TORCH_ARG(double, dropout) = 0.0;
  /// x is (B, L, D); false: (L, B, D).
  TORCH_ARG(bool, batch_first) = true;
  /// A position past the table makes it longer, device and dtype kept, instead of failing.
  TORCH_ARG(bool, grow) = false;
  /// Which sinusoid; its dim must be d_model.
  TORCH_ARG(SinusoidOptions, sinusoid);
};

/// Adds a sinusoidal encoding of its position to each row: dropout(x + pe[0, offset : offset + L]).
///
/// x: (B, L, D) or (L, D); (L, B, D) with batch_first(false)  ->  as x.
/// Key: buffer `pe` (1, max_len, d_model), with Storage::Table, in the default dtype as a module's
/// weights are. Converted to another dtype it is rounded once, from the recipe. Without a table the
/// row of position p is the one that a table has there, start and step of the sinusoid included.
/// Forward may run in several threads at a time, growth included.
///
/// Storage::Table never waits for a GPU. The others compute their rows on the CPU and copy them to
/// the device in each forward, explicit positions back before that.
/// With Precision::Exact and a half type, other values in `pe` are noticed where autograd counts
/// the write (copy_(), a load), not after memcpy() or pe.data().fill_().
/// Errors: functional::positional_encoding(); c10::ValueError, when the module is made, for a
/// sinusoid whose rows depend on the table's length unless the table's is fixed; without a table
/// c10::TypeError and c10::IndexError for positions, as a look-up has them.
/// Source: notebooks 00 and 03 `PositionalEncoding`.
class PositionalEncodingImpl : public Cloneable<PositionalEncodingImpl>, public WeightNotes {
 public:
  explicit PositionalEncodingImpl(int64_t d_model, int64_t max_len = 5000)
      : PositionalEncodingImpl(PositionalEncodingOptions(d_model, max_len)) {}
  explicit PositionalEncodingImpl(PositionalEncodingOptions options_);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  std::vector<ComputedTable> computed_tables() const override;
  using torch::nn::Module::to;
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;

  /// `offset`: the position of x's first row. `position_ids`: explicit positions instead, (L) or
  /// laid out as x without its last axis. With grow(true) they make the table grow only on devices
  /// that report a bad index (CPU): reading them back elsewhere would stop the device.
  torch::Tensor forward(const torch::Tensor& x, int64_t offset = 0,
                        const torch::Tensor& position_ids = {});

  /// The table that serves positions 0 .. rows-1, grown first where that is allowed and needed.
  /// (1, >= rows, D); later growth does not touch the returned tensor. For Storage::Table.
  torch::Tensor table(int64_t rows);

  /// Grows to `rows` where that is allowed and needed; while the result lives, `pe` stays as it is.
  /// Without grow(true) nothing is locked.
  std::shared_lock<std::shared_mutex> hold(int64_t rows);

  /// What a sum that is rounded once adds: `pe`, or the float32 rows behind it where it is of a
  /// half type, on the CPU, of Precision::Exact, and holds their roundings. Call it while hold()
  /// lives.
  const torch::Tensor& rows_to_add();

  /// Without Storage::Table: the rows for ids of `sizes`, (length, D) or (..., D) for positions
  /// laid out as they are. Throws as forward() does.
  torch::Tensor computed_rows(torch::IntArrayRef sizes, int64_t length, int64_t offset,
                              const torch::Tensor& position_ids) const;

  PositionalEncodingOptions options;
  torch::Tensor pe;  ///< undefined without Storage::Table
  torch::nn::Dropout dropout{nullptr};

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(int64_t{0})},
                                  {2, torch::nn::AnyValue(torch::Tensor())})

 private:
  void convert(torch::Dtype dtype);
  void grow_to(int64_t rows);
  torch::Tensor rows_from(const std::optional<FactoredTable>& table, int64_t length, int64_t offset,
                          const torch::Tensor& position_ids,
                          const torch::TensorOptions& type) const;
  torch::Tensor forward_without_table(const torch::Tensor& x, int64_t offset,
                                      const torch::Tensor& position_ids);

  bool sums_in_float() const;
  bool is_rounded_from(const torch::Tensor& wide) const;

  GrowthLock lock_;
  torch::Dtype dtype_ = torch::kFloat;  // of the rows, where no table tells it
  std::optional<FactoredTable> factored_;
  // For half types of Precision::Exact: the float32 rows, and the state of `pe` for which it is
  // known whether it holds their roundings.
  torch::Tensor wide_;
  std::optional<FactoredTable> wide_factored_;
  const void* known_data_ = nullptr;
  int64_t known_version_ = -1;
  bool known_rounded_ = false;
};

TORCH_MODULE(PositionalEncoding);

}  // namespace posenc
