#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/growth_lock.h"
#include "posenc/sinusoid/rotary.h"

namespace posenc {

/// Cos and sin of the positions from 0 on, which all modules with the same options and frequencies
/// share. They grow when a later position is needed.
class RotaryTables {
 public:
  struct Key {
    RotaryOptions options;
    std::string frequencies;  ///< the bytes of the tensors that the tables are computed from
    bool operator==(const Key& other) const {
      return frequencies == other.frequencies && options == other.options;
    }
  };
  /// Computes the rows [first, last).
  using Compute = std::function<RotaryCosSin(int64_t first, int64_t last)>;

  explicit RotaryTables(Key key) : key_(std::move(key)) {}

  /// The tables of all modules with this key.
  static std::shared_ptr<RotaryTables> shared(const Key& key);

  const RotaryOptions& options() const { return key_.options; }

  /// At least the first `count` rows, and at most `most` if that is not fewer. `length`: the one
  /// that determines the frequencies.
  RotaryCosSin rows(int64_t count, int64_t most, torch::Dtype dtype, torch::Device device,
                    int64_t length, const Compute& compute);

 private:
  struct Table {
    torch::Dtype dtype;
    torch::Device device;
    int64_t length;
    RotaryCosSin rows;
    int64_t size() const { return rows.cos.defined() ? rows.cos.size(0) : 0; }
  };
  std::vector<Table>::iterator find(torch::Dtype dtype, torch::Device device, int64_t length);

  const Key key_;
  std::shared_mutex lock_;
  std::vector<Table> tables_;
};

/// The tables that one module uses. Another thread may call its functions at the same time.
class RotaryTablesInUse {
 public:
  /// Those of these options and frequencies; `alpha` may be undefined, and both with
  /// Precision::Exact. The tables of frequencies on another device, which would have to be read
  /// back, are not shared, unless they are adopted.
  std::shared_ptr<RotaryTables> of(const RotaryOptions& options, const torch::Tensor& inv_freq,
                                   const torch::Tensor& alpha);
  /// Takes the tables of equal frequencies that may have been on another device.
  void adopt(std::shared_ptr<RotaryTables> tables, const torch::Tensor& inv_freq,
             const torch::Tensor& alpha);

 private:
  // A tensor that tables were computed from, to notice a write. The bytes show every one; on
  // another device the address of the data and the writes that autograd has counted are compared.
  struct Source {
    std::optional<torch::Dtype> dtype;  // none: no tensor
    bool on_cpu = true;
    std::string bytes;  // on the CPU
    const void* data = nullptr;
    int64_t version = -1;

    explicit Source(const torch::Tensor& tensor = {});
    bool is(const torch::Tensor& tensor) const;
  };

  bool fits(const RotaryOptions& options, const torch::Tensor& inv_freq,
            const torch::Tensor& alpha) const;

  GrowthLock lock_;
  std::shared_ptr<RotaryTables> tables_;
  Source inv_freq_, alpha_;
};

}  // namespace posenc
