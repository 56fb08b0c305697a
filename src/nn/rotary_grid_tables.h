#pragma once

#include <torch/types.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "posenc/nn/rotary_position_embedding_2d.h"
#include "posenc/sinusoid/rotary.h"

namespace posenc {

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
