// posenc-budget: one protocol between callers and helpers, whose states are read side by side

#include "base/platform/helpers.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/platform/helper_credit.h"

namespace posenc::platform {
namespace {

// In nanoseconds.
constexpr int64_t kWatch = 200'000;     // of a helper after a loop, before it sleeps
constexpr int64_t kGap = 100'000;       // in a helper's watch: it has lost its processor meanwhile
constexpr int64_t kPatience = 20'000;   // of a caller, besides the time of two parts
constexpr int64_t kMostSpin = 200'000;  // of a caller, before it sleeps

constexpr int64_t kTurnsPerYield = 64;  // of a watch
constexpr int kMostPerLoop = 255;

thread_local bool is_inside_part = false;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// What a helper does; the number of its loop is above. So a caller does not take the next loop,
// which may be another caller's, for its own.
enum State : int64_t {
  kAbsent,  // not started
  kAsleep,
  kWatching,
  kReserved,  // by a caller that is about to assign a loop
  kAssigned,  // a loop that it has not begun
  kWorking,
  kAwaited,  // working, and the caller sleeps until it is done
};
constexpr int64_t kStates = 8;

State state_of(int64_t word) { return static_cast<State>(word % kStates); }
int64_t with(int64_t word, State state) { return word - word % kStates + state; }

}  // namespace

// A caller's loop, which lives as long as run().
class Helpers::Loop {
 public:
  explicit Loop(const Parts& parts)
      : parts_(parts), left_(static_cast<uint64_t>(parts.count)), began_(now()) {}

  // Takes parts until none is left, and returns how many.
  int64_t work(bool from_end) {
    int64_t taken = 0;
    is_inside_part = true;
    try {
      for (int64_t i = take(from_end); i >= 0; i = take(from_end), ++taken)
        parts_.part(parts_.context, i);
    } catch (...) {
      left_.store(0, std::memory_order_relaxed);
      if (!has_failed_.exchange(true)) error_ = std::current_exception();
    }
    is_inside_part = false;
    return taken;
  }

  // The caller's own work.
  void work_as_caller() {
    const int64_t taken = work(/*from_end=*/false);
    ended_ = now();
    part_ = length() / std::max<int64_t>(taken, 1);
  }
  int64_t length() const { return ended_ - began_; }
  int64_t began() const { return began_; }
  int64_t ended() const { return ended_; }
  int64_t part() const { return part_; }  // the time of one

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  // The parts that are left are [upper half, lower half) of one word.
  int64_t take(bool from_end) {
    uint64_t left = left_.load(std::memory_order_relaxed);
    for (;;) {
      const uint64_t begin = left >> 32U, end = left & 0xffffffffU;
      if (begin >= end) return -1;
      const uint64_t rest = from_end ? left - 1 : left + (uint64_t{1} << 32U);
      if (left_.compare_exchange_weak(left, rest, std::memory_order_relaxed))
        return static_cast<int64_t>(from_end ? end - 1 : begin);
    }
  }

  const Parts parts_;
  std::atomic<uint64_t> left_;
  std::atomic<bool> has_failed_{false};
  std::exception_ptr error_;
  const int64_t began_;
  int64_t ended_ = 0, part_ = 0;
};

struct alignas(128) Helpers::Helper {
  std::atomic<int64_t> word{kAbsent};
  Loop* loop = nullptr;  // while one is assigned
  HelperCredit credit;
  std::mutex mutex;                 // of those who sleep:
  std::condition_variable changed;  // the helper, or the caller that awaits it
  std::thread thread;

  void wake() {
    { const std::lock_guard<std::mutex> lock(mutex); }
    changed.notify_all();
  }
};

Helpers::Helpers(int most)
    : most_(std::max(most, 0)), helpers_(std::make_unique<Helper[]>(most_)) {}
Helpers::~Helpers() { stop(); }

int Helpers::threads(int limit) const {
  if (is_inside_part) return 1;
  const int64_t worked = worked_.load(std::memory_order_relaxed);
  int found = 1;
  for (int i = 0; i < most_ && found < limit; ++i) found += !helpers_[i].credit.pauses(worked);
  return found;
}

void Helpers::run(const Parts& parts, int threads) {
  if (is_inside_part || parts.count <= 0) {
    for (int64_t i = 0; i < parts.count; ++i) parts.part(parts.context, i);
    return;
  }
  struct Assigned {
    Helper* helper;
    int64_t word;
  };
  std::array<Assigned, kMostPerLoop> assigned;
  std::size_t count = 0;
  Loop loop(parts);
  const int64_t worked = worked_.load(std::memory_order_relaxed);
  const auto requested = static_cast<std::size_t>(
      std::clamp<int64_t>(std::min<int64_t>(threads, parts.count) - 1, 0, kMostPerLoop));
  for (int i = 0; i < most_ && count < requested; ++i) {
    Helper& helper = helpers_[i];
    if (helper.credit.pauses(worked)) continue;
    const int64_t word = assign(helper, loop);
    if (word >= 0) assigned[count++] = {&helper, word};
  }
  loop.work_as_caller();
  for (std::size_t i = 0; i < count; ++i) release(*assigned[i].helper, assigned[i].word, loop);
  worked_.fetch_add((count > 0 ? now() : loop.ended()) - loop.began(), std::memory_order_relaxed);
  loop.rethrow();
}

// Returns the helper's word while it has the loop, or -1 if it is not free.
int64_t Helpers::assign(Helper& helper, Loop& loop) {
  int64_t word = helper.word.load(std::memory_order_relaxed);
  if (state_of(word) == kAbsent && start(helper)) word = helper.word.load();
  const State before = state_of(word);
  if ((before != kWatching && before != kAsleep) || is_stopped_.load(std::memory_order_relaxed) ||
      !helper.word.compare_exchange_strong(word, with(word, kReserved), std::memory_order_acquire))
    return -1;
  helper.loop = &loop;
  const int64_t assigned = with(word + kStates, kAssigned);
  helper.word.store(assigned, std::memory_order_release);
  if (before == kAsleep) helper.wake();
  return assigned;
}

// Takes the loop back if the helper has not begun it; otherwise waits until it is done.
void Helpers::release(Helper& helper, int64_t assigned, const Loop& loop) {
  int64_t word = assigned;
  if (helper.word.compare_exchange_strong(word, with(assigned, kWatching),
                                          std::memory_order_acquire))
    return;
  const int64_t working = with(assigned, kWorking), awaited = with(assigned, kAwaited);
  const int64_t patience = 2 * loop.part() + kPatience;
  int64_t waited = 0;
  while (helper.word.load(std::memory_order_acquire) == working) {
    relax();
    waited = now() - loop.ended();
    word = working;
    if (waited < std::min(patience, kMostSpin) ||
        !helper.word.compare_exchange_strong(word, awaited))
      continue;
    // The helper may wait for this very processor.
    std::unique_lock<std::mutex> lock(helper.mutex);
    helper.changed.wait(lock, [&] { return helper.word.load() != awaited; });
    waited = now() - loop.ended();
  }
  helper.credit.note(loop.length(), waited > patience ? waited - loop.part() : 0,
                     worked_.load(std::memory_order_relaxed));
}

// Signals are for the program's own threads.
bool Helpers::start(Helper& helper) {
  if (is_starting_.exchange(true)) return false;
  bool is_started = false;
  if (helper.word.load() == kAbsent && !is_stopped_.load()) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      helper.thread = std::thread([this, &helper] { serve(helper); });
      helper.word.store(kWatching);
      is_started = true;
    } catch (const std::exception&) {  // the system has no more threads, or no memory for one
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  is_starting_.store(false);
  return is_started;
}

void Helpers::serve(Helper& helper) {
  int64_t seen = now(), until = seen + kWatch;
  for (int64_t turn = 0;; ++turn) {
    const int64_t before = std::exchange(seen, now());
    if (seen - before > kGap) {
      const int64_t worked = worked_.load(std::memory_order_relaxed);
      helper.credit.note(0, seen - before, worked);
      if (helper.credit.pauses(worked)) until = seen;
    }
    int64_t word = helper.word.load(std::memory_order_acquire);
    const State state = state_of(word);
    if (state == kAssigned) {
      if (!helper.word.compare_exchange_strong(word, with(word, kWorking),
                                               std::memory_order_acquire))
        continue;
      helper.loop->work(/*from_end=*/true);
      word = helper.word.exchange(with(word, kWatching), std::memory_order_acq_rel);
      if (state_of(word) == kAwaited) helper.wake();
      seen = now();
      until = seen + kWatch;
    } else if (state == kWatching && is_stopped_.load(std::memory_order_relaxed)) {
      return;
    } else if (state != kWatching || seen < until) {
      turn % kTurnsPerYield == 0 ? std::this_thread::yield() : relax();
    } else {
      sleep(helper, word);
      seen = std::max(now(), until);  // one that is woken too late sleeps again
    }
  }
}

void Helpers::sleep(Helper& helper, int64_t word) {
  std::unique_lock<std::mutex> lock(helper.mutex);
  if (!helper.word.compare_exchange_strong(word, with(word, kAsleep))) return;
  helper.changed.wait(lock, [&] {
    // Any other state is one of somebody who has woken it, and who does not do so again: a caller
    // that reserves a helper that it finds watching takes it to be awake.
    return state_of(helper.word.load(std::memory_order_acquire)) != kAsleep || is_stopped_.load();
  });
  word = helper.word.load();
  if (state_of(word) == kAsleep) helper.word.compare_exchange_strong(word, with(word, kWatching));
}

void Helpers::stop() {
  is_stopped_.store(true);
  while (is_starting_.exchange(true)) relax();
  for (int i = 0; i < most_; ++i) {
    if (!helpers_[i].thread.joinable()) continue;
    helpers_[i].wake();
    helpers_[i].thread.join();
  }
  is_starting_.store(false);
}

namespace {

std::atomic<Helpers*> of_process{nullptr};

// The object itself stays: others that are destroyed later, and other threads, may still call it.
struct StopAtExit {
  ~StopAtExit() {
    if (Helpers* const found = of_process.load()) found->stop();
  }
};

}  // namespace

Helpers& helpers() {
  Helpers* found = of_process.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  static const StopAtExit stop_at_exit;
  // The threads of a parent do not run in its child.
  static const int is_registered =
      pthread_atfork(nullptr, nullptr, [] { of_process.store(nullptr); });
  static_cast<void>(is_registered);
  auto made = std::make_unique<Helpers>(static_cast<int>(std::thread::hardware_concurrency()) - 1);
  return of_process.compare_exchange_strong(found, made.get()) ? *made.release() : *found;
}

}  // namespace posenc::platform
