#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/uncopied.h"
#include "posenc/positions/nn/rotary_position_embedding_2d.h"
#include "posenc/positions/rotary/rotary.h"

namespace posenc {

/// What LengthRule::System remembers of the calls so far.
struct RotaryLengths {
  int64_t longest = 0;  ///< the longest sequence
  torch::Tensor grown;  ///< its frequencies, where to() has rounded them; otherwise undefined
};

/// All that the frequencies of a module depend on, besides the length and the dtype of a call. They
/// are computed from this alone, and it is the key of the tables, so that modules share tables only
/// if they would compute the same.
struct RotarySource {
  const RotaryOptions& options;  ///< those of the module, as they are now
  torch::Tensor inv_freq;        ///< undefined with Precision::Exact
  torch::Tensor alpha;           ///< undefined without learned_scale
  double attention_scaling;      ///< the factor of cos and sin at construction
  RotaryLengths lengths;         ///< of which `longest` matters only beside `grown`
};

/// Cos and sin of the positions from 0 on, which all modules with the same options and frequencies
/// share. They grow when a later position is needed.
class RotaryTables {
 public:
  struct Key {
    RotaryOptions options;
    std::string rest;  ///< the bytes of the rest of a RotarySource
    bool operator==(const Key& other) const {
      return rest == other.rest && options == other.options;
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
  /// Those of `source`. The tables of frequencies on another device, which would have to be read
  /// back, are not shared, unless they are adopted.
  std::shared_ptr<RotaryTables> of(const RotarySource& source);
  /// Takes the tables of a source that differs from `source` in nothing but its device.
  void adopt(std::shared_ptr<RotaryTables> tables, const RotarySource& source);

 private:
  // A tensor that tables were computed from, to notice a write. The bytes show every one; on
  // another device the address of the data and the writes that autograd has counted are compared.
  struct Seen {
    std::optional<torch::Dtype> dtype;  // none: no tensor
    bool on_cpu = true;
    std::string bytes;  // on the CPU
    const void* data = nullptr;
    int64_t version = -1;

    explicit Seen(const torch::Tensor& tensor = {});
    bool is(const torch::Tensor& tensor) const;
  };

  bool fits(const RotarySource& source) const;
  void see(const RotarySource& source);

  GrowthLock lock_;
  std::shared_ptr<RotaryTables> tables_;
  Seen inv_freq_, alpha_, grown_;
  double attention_scaling_ = 1.0;
  int64_t longest_ = 0;  // 0 unless frequencies have grown
};

/// Cos and sin of the grids that were used last, which all modules with the same options share.
class RotaryGridTables {
 public:
  struct Key {
    RotaryOptions options;
    int64_t most;  ///< number of grids that are kept
    bool operator==(const Key& other) const {
      return most == other.most && options == other.options;
    }
  };
  struct Table {
    std::vector<int64_t> sizes;
    torch::Dtype dtype;
    torch::Device device;
    RotaryCosSin rows;
  };

  explicit RotaryGridTables(Key key) : key_(std::move(key)) {}

  /// The tables of all modules with this key.
  static std::shared_ptr<RotaryGridTables> shared(const Key& key);

  const Key& key() const { return key_; }
  /// The rows of a grid, which are undefined if it is not kept.
  RotaryCosSin find(const std::vector<int64_t>& sizes, torch::Dtype dtype, torch::Device device);
  /// Keeps a grid, in place of the one that has not been used for the longest time.
  void keep(Table table);

 private:
  bool is_last(const std::vector<int64_t>& sizes, torch::Dtype dtype, torch::Device device);

  const Key key_;
  std::mutex lock_;
  std::vector<Table> tables_;  // the one that was used last at the end
};

/// Functions of RotaryPositionEmbedding2d that it and tests call.
struct RotaryPositionEmbedding2dAccess {
  static std::shared_ptr<RotaryGridTables> tables(const RotaryPositionEmbedding2dImpl& module);
};

}  // namespace posenc
