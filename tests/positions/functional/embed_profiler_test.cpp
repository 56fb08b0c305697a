// What profilers see of the operations that bypass ATen: their names.

#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include <algorithm>
#include <mutex>
#include <string>

#include "posenc/positions/functional/dropout.h"
#include "posenc/positions/functional/embed.h"
#include "positions/functional/embed/fused.h"
#include "support/compare.h"

namespace posenc::functional {
namespace {

struct Event {
  std::string name;
  std::vector<std::vector<int64_t>> shapes;
  int64_t node;
  bool operator<(const Event& other) const { return name < other.name; }
};

std::mutex lock;
std::vector<Event>* events = nullptr;

// All operations recorded while `work` runs.
template <typename Work>
std::vector<Event> recorded(Work work) {
  std::vector<Event> found;
  events = &found;
  const auto handle =
      at::addGlobalCallback(at::RecordFunctionCallback([](const at::RecordFunction& function) {
                              Event event{function.name(), {}, function.seqNr()};
                              for (const auto& input : function.inputs())
                                if (input.isTensor() && input.toTensor().defined())
                                  event.shapes.push_back(input.toTensor().sizes().vec());
                              const std::lock_guard<std::mutex> guard(lock);
                              events->push_back(std::move(event));
                              return std::unique_ptr<at::ObserverContext>();
                            }).needsInputs(true));
  work();
  at::removeCallback(handle);
  return found;
}

const Event* find(const std::vector<Event>& found, const std::string& name) {
  const auto event =
      std::find_if(found.begin(), found.end(), [&](const Event& e) { return e.name == name; });
  return event == found.end() ? nullptr : &*event;
}

TEST(Profiler, SeesThePassesByName) {
  const auto ids = torch::tensor({{1, 4, 1}, {0, 6, 1}}), positions = torch::tensor({2, 0, 1});
  const auto weight = torch::randn({7, 5}).requires_grad_();
  const auto table = torch::randn({3, 5}), out = torch::empty({2, 3, 5});
  const auto found = recorded([&] {
    functional::dropout(embed(ids, weight, table), 0.5, true).sum().backward();
    const torch::NoGradGuard guard;
    embed_out(out, ids, weight, table);
  });
  for (const auto* name : {"posenc::embed", "posenc::embed_backward", "posenc::dropout",
                           "posenc::dropout_backward", "posenc::embed_out"}) {
    ASSERT_NE(find(found, name), nullptr) << name;
  }
  const Event& forward = *find(found, "posenc::embed");
  EXPECT_EQ(forward.shapes, (std::vector<std::vector<int64_t>>{{2, 3}, {7, 5}, {3, 5}}));
  ASSERT_NE(find(found, "EmbedBackward"), nullptr);
  EXPECT_EQ(forward.node, find(found, "EmbedBackward")->node);  // traces draw arrows by this
  EXPECT_EQ(find(found, "posenc::dropout")->node, find(found, "DropoutBackward")->node);
  EXPECT_EQ(find(found, "posenc::embed_out")->node, -1);
}

}  // namespace
}  // namespace posenc::functional
