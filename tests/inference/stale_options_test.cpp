// Each option of each module of many models is changed after the model was frozen, each tensor is
// written: wherever the model's results move, the frozen model must notice. Which options there
// are, lint knows: tools/lint.py, check_fields.

#include <gtest/gtest.h>

#include "inference/freezable_models.h"
#include "models/options/holders.h"
#include "support/compare.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

// --- changes ------------------------------------------------------------------------------------

// What is done with a model one option of which is another, and once it has its old value again.
struct Try {
  std::function<void(const std::string& where, bool is_read)> changed;
  std::function<void()> restored;
};

template <typename T>
void change_each(T& value, const std::string& where, bool is_read, const Try& with);
template <typename T>
void change_each(std::optional<T>& value, const std::string& where, bool is_read, const Try& with);
template <typename T>
void change_each(std::vector<T>& value, const std::string& where, bool is_read, const Try& with);
template <typename... T>
void change_each(std::variant<T...>& value, const std::string& where, bool is_read,
                 const Try& with);
template <std::size_t D>
void change_each(torch::ExpandingArray<D>& value, const std::string& where, bool is_read,
                 const Try& with);

template <typename T>
void change_to(T& value, T other, const std::string& where, bool is_read, const Try& with) {
  std::swap(value, other);
  with.changed(where, is_read);
  std::swap(value, other);
  with.restored();
}

template <typename T>
void change_each(std::optional<T>& value, const std::string& where, bool is_read, const Try& with) {
  if (value) {
    change_each(*value, where, is_read, with);
    change_to<std::optional<T>>(value, std::nullopt, where + " = none", is_read, with);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    change_to<std::optional<T>>(value, static_cast<T>(1), where, is_read, with);
  } else if constexpr (std::is_default_constructible_v<T>) {
    change_to<std::optional<T>>(value, T{}, where, is_read, with);
  }
}
template <typename T>
void change_each(std::vector<T>& value, const std::string& where, bool is_read, const Try& with) {
  if (value.empty()) {
    if constexpr (std::is_arithmetic_v<T>) change_to(value, {1}, where, is_read, with);
    return;
  }
  for (std::size_t i = 0; i < value.size(); ++i)
    change_each(value[i], where + "[" + std::to_string(i) + "]", is_read, with);
  change_to(value, std::vector<T>(value.begin(), value.end() - 1), where + " shorter", is_read,
            with);
}
template <typename... T>
void change_each(std::variant<T...>& value, const std::string& where, bool is_read,
                 const Try& with) {
  std::visit([&](auto& own) { change_each(own, where, is_read, with); }, value);
}
template <std::size_t D>
void change_each(torch::ExpandingArray<D>& value, const std::string& where, bool is_read,
                 const Try& with) {
  auto other = value;
  (*other)[0] += 1;
  change_to(value, other, where, is_read, with);
}
template <typename T>
void change_each(T& value, const std::string& where, bool is_read, const Try& with) {
  if constexpr (std::is_same_v<T, Scale>) {
    change_to(value, Scale(0.7), where, is_read, with);
  } else if constexpr (fields::IsListed<T>::value) {
    const auto visit = [&](bool reads) {
      return [&, reads](const char* names, const auto&... own) {
        std::size_t index = 0;
        (change_each(const_cast<std::decay_t<decltype(own)>&>(own),
                     where + "." + fields::field_name(names, index++), is_read && reads, with),
         ...);
      };
    };
    fields::List<T>::visit(value, visit(true));
    if constexpr (fields::HasTrainingFields<T>::value) value.visit_training_fields(visit(false));
  } else if constexpr (std::is_same_v<T, bool>) {
    change_to(value, !value, where, is_read, with);
  } else if constexpr (std::is_integral_v<T>) {
    change_to<T>(value, value + 1, where, is_read, with);
  } else if constexpr (std::is_floating_point_v<T>) {
    change_to<T>(value, value * 1.5 + 0.25, where, is_read, with);
  } else if constexpr (std::is_enum_v<T>) {
    change_to(value, static_cast<T>(static_cast<int>(value) == 0 ? 1 : 0), where, is_read, with);
  } else if constexpr (std::is_same_v<T, std::string>) {
    change_to(value, value + "x", where, is_read, with);
  } else {
    static_assert(std::is_empty_v<T>);
  }
}

// --- the laws -----------------------------------------------------------------------------------

// Whether the model's results are others, but for rounding, or an error.
bool moves(const FreezableModel& model, const torch::Tensor& before) {
  try {
    const torch::Tensor now = model.run();
    return now.sizes() != before.sizes() || !near(now, before);
  } catch (const std::exception&) {
    return true;
  }
}

bool is_noticed(const std::function<torch::Tensor()>& run_frozen) {
  try {
    run_frozen();
    return false;
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();
    EXPECT_NE(what.find("the model must not change once it is frozen"), std::string::npos) << what;
    return true;
  }
}

// All tensors of a model, with copies of their values.
std::vector<std::pair<torch::Tensor, torch::Tensor>> tensors_of(const torch::nn::Module& model) {
  std::vector<std::pair<torch::Tensor, torch::Tensor>> tensors;
  for (const auto& tensor : model.parameters()) tensors.emplace_back(tensor, tensor.clone());
  for (const auto& tensor : model.buffers())
    if (tensor.defined()) tensors.emplace_back(tensor, tensor.clone());
  return tensors;
}

void change_options(torch::nn::Module& module, const Try& with) {
  const auto change = [&](auto& own) {
    if constexpr (requires { own.options; }) change_each(own.options, "", true, with);
  };
  OptionHolders::visit(module, change) || ModelOptionHolders::visit(module, change);
}

void options_are_noticed(const std::vector<FreezableModel>& models) {
  const torch::NoGradGuard no_grad;
  const Threads one(1);
  std::size_t moved = 0, tried = 0;
  for (const FreezableModel& model : models) {
    SCOPED_TRACE(model.name);
    const auto before = model.run();
    auto run_frozen = model.freeze();
    run_frozen();
    auto tensors = tensors_of(*model.model);
    for (const auto& item : model.model->named_modules()) {
      const auto changed = [&](const std::string& where, bool is_read) {
        const bool does_move = moves(model, before);
        const bool noticed = is_noticed(run_frozen);
        ++tried;
        moved += does_move;
        EXPECT_TRUE(noticed || !does_move) << item.key() << where;
        EXPECT_EQ(noticed, is_read) << item.key() << where;
      };
      // Such as a table that an option makes the forward renormalise.
      const auto restored = [&] {
        bool is_written = false;
        for (auto& [tensor, old] : tensors) {
          if (bit_equal(tensor, old)) continue;
          is_written = true;
          tensor.copy_(old);
        }
        if (is_written) run_frozen = model.freeze();
      };
      change_options(*item.value(), {changed, restored});
    }
    ASSERT_TRUE(bit_equal(model.run(), before));
    run_frozen();
  }
  EXPECT_GT(moved, tried / 20);
}

// Each option that is changed before the model is frozen, where the module takes it: the frozen
// model computes what the module computes, or freeze() refuses it.
void options_are_read_or_refused(const std::vector<FreezableModel>& models) {
  const torch::NoGradGuard no_grad;
  const Threads one(1);
  std::size_t read = 0, refused = 0;
  for (const FreezableModel& model : models) {
    SCOPED_TRACE(model.name);
    auto tensors = tensors_of(*model.model);
    for (const auto& item : model.model->named_modules()) {
      const auto changed = [&](const std::string& where, bool) {
        torch::Tensor expected, got;
        try {
          expected = model.run();
        } catch (const std::exception&) {
          return;
        }
        try {
          got = model.freeze()();
        } catch (const c10::Error&) {
          ++refused;
          return;
        }
        ++read;
        EXPECT_TRUE(got.sizes() == expected.sizes() &&
                    got.allclose(expected, 1e-3, 1e-3, /*equal_nan=*/true))
            << item.key() << where;
      };
      const auto restored = [&] {
        for (auto& [tensor, old] : tensors) tensor.copy_(old);
      };
      change_options(*item.value(), {changed, restored});
    }
  }
  EXPECT_GT(read, refused);
}

TEST(OptionsSetLater, OfStacksAreReadOrRefused) { options_are_read_or_refused(freezable_stacks()); }
TEST(OptionsSetLater, OfTasksAreReadOrRefused) { options_are_read_or_refused(freezable_tasks()); }

TEST(StaleOptions, OfStacksThatMoveAResultAreNoticed) { options_are_noticed(freezable_stacks()); }
TEST(StaleOptions, OfModelsThatMoveAResultAreNoticed) { options_are_noticed(freezable_models()); }

void writes_are_noticed(const std::vector<FreezableModel>& models) {
  const torch::NoGradGuard no_grad;
  const Threads one(1);
  for (const FreezableModel& model : models) {
    SCOPED_TRACE(model.name);
    const auto before = model.run();
    auto tensors = model.model->named_parameters();
    for (const auto& item : model.model->named_buffers()) tensors.insert(item.key(), item.value());
    for (const auto& item : tensors) {
      torch::Tensor tensor = item.value();
      if (!tensor.defined()) continue;
      const auto run_frozen = model.freeze();
      const torch::Tensor old = tensor.clone();
      tensor.add_(1);
      const bool does_move = moves(model, before);
      EXPECT_TRUE(is_noticed(run_frozen) || !does_move) << item.key();
      tensor.copy_(old);
    }
    ASSERT_TRUE(bit_equal(model.run(), before));
  }
}

TEST(StaleTensors, OfStacksThatMoveAResultAreNoticed) { writes_are_noticed(freezable_stacks()); }
TEST(StaleTensors, OfModelsThatMoveAResultAreNoticed) { writes_are_noticed(freezable_models()); }

// LibTorch writes running statistics in it without another version of the tensor.
TEST(StaleTensors, AForwardInTrainingThatMovesAResultIsNoticed) {
  const torch::NoGradGuard no_grad;
  std::size_t moved = 0;
  for (const FreezableModel& model : freezable_stacks()) {
    SCOPED_TRACE(model.name);
    const auto before = model.run();
    const auto run_frozen = model.freeze();
    model.model->train();
    model.run();
    model.model->eval();
    const bool does_move = moves(model, before);
    moved += does_move;
    EXPECT_EQ(is_noticed(run_frozen), does_move);
  }
  EXPECT_EQ(moved, 1U) << "that of the conformer";
}

}  // namespace
}  // namespace posenc::testing
