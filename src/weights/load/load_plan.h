#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "posenc/weights/load.h"
#include "weights/common/module_state.h"
#include "weights/load/mapped_source.h"
#include "weights/load/mismatch.h"
#include "weights/load/overlap.h"

namespace posenc::io {

/// Additional knowledge about a module that the reader of a format has.
struct FormatNames {
  std::vector<TiedName> tied;      ///< additional names in files for tensors of the module
  std::set<std::string> optional;  ///< tensors of the module that a file may lack
  /// Whether the module has been made for this load, of a configuration: errors then do not speak
  /// of it, which the user does not know. It may be without memory then, for apply_to().
  bool is_new = false;
};

/// A load that has been checked: which tensor of the module gets which tensor of the source. The
/// constructor changes nothing and throws a single WeightsError for everything that does not fit;
/// apply() can then fail only if reading does. The source has to outlive the plan.
class LoadPlan {
 public:
  LoadPlan(const torch::nn::Module& module, const TensorSource& source, const LoadOptions& options,
           const FormatNames& names = {});

  /// Reads everything that has not been read yet into separate memory.
  void stage();
  /// Writes to the module. Its errors name the tensors that have already been written.
  void apply() const;
  /// Writes to another module with the same tensors, where that of the constructor has no memory.
  void apply_to(const torch::nn::Module& module);

  const LoadReport& report() const { return report_; }
  /// The names in the source of what it reads.
  std::vector<std::string> names_read() const;

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  struct Match {
    std::size_t source = kNone;  // index of an entry
    at::Tensor value;            // if it has been read already: a table, or any after stage()
  };

  void set_targets(const ModuleState& state);
  void match_names();
  void list_missing(const LoadOptions& options, const std::set<std::string>& optional);
  bool is_batch_counter(const Target& target) const;
  bool is_beside_missing(const std::string& name) const;
  void name_objects();
  void check_pair(std::size_t target, bool cast);
  bool check_memory(const Target& target);
  bool check_dtype(std::size_t target, bool cast);
  void check_shape(std::size_t target, bool may_read);
  void check_ties(const std::string& prefix);
  void check_overlaps(const std::string& prefix);
  std::string without(std::size_t source, const std::string& prefix) const;
  at::Tensor value_of(std::size_t target) const;
  void write(std::size_t target) const;
  void fault(WeightsErrorCode code, const std::string& name, const std::string& text,
             const std::string& remedy = "");

  const MappedSource source_;
  std::vector<Target> targets_;
  std::vector<Match> matches_;  // one per target
  Sharing sharing_;
  std::vector<TiedName> tied_;
  std::map<std::string, ComputedTable> tables_;
  std::set<std::string> non_persistent_;
  Mismatch mismatch_;
  LoadReport report_;
  bool is_staged_ = false;
};

}  // namespace posenc::io
