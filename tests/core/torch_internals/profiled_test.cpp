// To profilers, a Profiled looks like an operation of ATen. A new LibTorch may change the steps of
// its dispatcher (callbacks, inputs, the number that links a forward to its backward).

#include "core/torch_internals/profiled.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>
#include <torch/utils.h>

#include <string>
#include <vector>

namespace posenc::torch_internals {
namespace {

struct Event {
  std::string name;
  std::size_t inputs;
  int64_t node;
  bool ended;
};

std::vector<Event> events;

struct Context : at::ObserverContext {
  std::size_t index = 0;
};

// Records the operations of this thread while it is alive.
class Recorder {
 public:
  explicit Recorder(bool needs_inputs)
      : handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(
                [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
                  auto context = std::make_unique<Context>();
                  context->index = events.size();
                  events.push_back({function.name(),
                                    function.needsInputs() ? function.inputs().size() : 0,
                                    function.seqNr(), false});
                  return context;
                },
                [](const at::RecordFunction&, at::ObserverContext* context) {
                  events[static_cast<Context*>(context)->index].ended = true;
                })
                .needsInputs(needs_inputs))) {
    events.clear();
  }
  ~Recorder() { at::removeCallback(handle_); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

 private:
  at::CallbackHandle handle_;
};

TEST(Profiled, LastsAsLongAsTheWork) {
  const Recorder recorder(false);
  {
    const Profiled profiled("posenc::work");
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].name, "posenc::work");
    EXPECT_FALSE(events[0].ended);
    torch::ones(1);
  }
  EXPECT_TRUE(events[0].ended);
  EXPECT_GT(events.size(), 1u) << "ATen's operations inside are seen as well";
}

TEST(Profiled, ShowsItsInputsOnRequest) {
  const auto x = torch::ones(3);
  for (const bool needs_inputs : {false, true}) {
    const Recorder recorder(needs_inputs);
    const Profiled profiled("posenc::work", x, x);
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].inputs, needs_inputs ? 2u : 0u);
  }
}

// ATen's mul has the sequence number of its node; so does a Profiled that is followed by a new
// node.
TEST(Profiled, HasTheNumberOfTheNodeThatIsMadeNext) {
  const auto x = torch::ones(3).requires_grad_();
  const Recorder recorder(false);
  const auto theirs = x * x;
  ASSERT_EQ(events.front().name, "aten::mul");
  EXPECT_EQ(events.front().node, static_cast<int64_t>(theirs.grad_fn()->sequence_nr()));
  events.clear();
  const Profiled profiled("posenc::work", x);
  const auto ours = x * x;
  EXPECT_EQ(events.front().node, static_cast<int64_t>(ours.grad_fn()->sequence_nr()));
}

TEST(Profiled, HasNoNumberWhereNothingIsRecorded) {
  const torch::NoGradGuard guard;
  const Recorder recorder(false);
  const Profiled profiled("posenc::work");
  EXPECT_EQ(events.front().node, -1);
}

}  // namespace
}  // namespace posenc::torch_internals
