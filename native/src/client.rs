//! The client library that the `confluent_kafka` package has brought, called by its C interface.
//!
//! Both readers then run the same build of it: options, security and compression cannot differ.

use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Mutex;

const CONSUMER: c_int = 1;
const CONF_OK: c_int = 0;
const DESTROY_WITHOUT_CLOSE: c_int = 0x8; // readers never join a group
const TEXT_BYTES: usize = 512;

#[repr(C)]
struct RawMessage {
    error: c_int,
    topic: *mut c_void,
    partition: i32,
    payload: *const u8,
    payload_len: usize,
    key: *const u8,
    key_len: usize,
    offset: i64,
    private: *mut c_void,
}

type OnError = unsafe extern "C" fn(*mut c_void, c_int, *const c_char, *mut c_void);

macro_rules! functions {
    ($($name:ident: fn($($kind:ty),*) $(-> $out:ty)?;)*) => {
        #[derive(Clone, Copy)]
        struct Functions { $($name: unsafe extern "C" fn($($kind),*) $(-> $out)?),* }

        impl Functions {
            fn of(library: &Library) -> Result<Self, String> {
                // Signatures as in the library's header, which keeps them within a major version.
                unsafe {
                    Ok(Self { $($name: *library
                        .get(concat!("rd_kafka_", stringify!($name)))
                        .map_err(|error| error.to_string())?),* })
                }
            }
        }
    };
}

functions! {
    conf_new: fn() -> *mut c_void;
    conf_set: fn(*mut c_void, *const c_char, *const c_char, *mut c_char, usize) -> c_int;
    conf_set_opaque: fn(*mut c_void, *mut c_void);
    conf_set_error_cb: fn(*mut c_void, Option<OnError>);
    conf_destroy: fn(*mut c_void);
    new: fn(c_int, *mut c_void, *mut c_char, usize) -> *mut c_void;
    poll_set_consumer: fn(*mut c_void) -> c_int;
    queue_get_consumer: fn(*mut c_void) -> *mut c_void;
    queue_destroy: fn(*mut c_void);
    destroy_flags: fn(*mut c_void, c_int);
    topic_partition_list_new: fn(c_int) -> *mut c_void;
    topic_partition_list_add: fn(*mut c_void, *const c_char, i32) -> *mut c_void;
    topic_partition_list_set_offset: fn(*mut c_void, *const c_char, i32, i64) -> c_int;
    topic_partition_list_destroy: fn(*mut c_void);
    assign: fn(*mut c_void, *const c_void) -> c_int;
    consume_batch_queue: fn(*mut c_void, c_int, *mut *mut RawMessage, usize) -> isize;
    message_destroy: fn(*mut RawMessage);
    message_timestamp: fn(*const RawMessage, *mut c_int) -> i64;
    query_watermark_offsets: fn(*mut c_void, *const c_char, i32, *mut i64, *mut i64, c_int) -> c_int;
    err2str: fn(c_int) -> *const c_char;
}

/// One consumer, assigned by hand.
pub struct Client {
    calls: Functions,
    handle: *mut c_void,
    queue: *mut c_void,
    complaint: Box<Mutex<String>>, // the library writes there: it must not move
    owner: u32, // a process that was forked off has the handles, but not the library's threads
    _library: Library,
}

// The library's handles may be used by any thread; `Consumer` lets one in at a time.
unsafe impl Send for Client {}

impl Client {
    /// `beside` is a module that is linked with the client library.
    pub fn new(beside: &str, config: &[(String, String)]) -> Result<Self, String> {
        let library = unsafe { Library::new(beside) }.map_err(|error| error.to_string())?;
        let calls = Functions::of(&library)?;
        let complaint = Box::new(Mutex::new(String::new()));
        let handle = unsafe { started(&calls, config, &complaint)? };
        let queue = unsafe {
            (calls.poll_set_consumer)(handle);
            (calls.queue_get_consumer)(handle)
        };
        Ok(Self { calls, handle, queue, complaint, owner: std::process::id(), _library: library })
    }

    pub fn assign(&self, topic: &str, partition: i32, offset: i64) -> Result<(), String> {
        let topic = text(topic)?;
        let code = unsafe {
            let places = (self.calls.topic_partition_list_new)(1);
            (self.calls.topic_partition_list_add)(places, topic.as_ptr(), partition);
            (self.calls.topic_partition_list_set_offset)(places, topic.as_ptr(), partition, offset);
            let code = (self.calls.assign)(self.handle, places);
            (self.calls.topic_partition_list_destroy)(places);
            code
        };
        self.judged(code)
    }

    pub fn unassign(&self) -> Result<(), String> {
        self.judged(unsafe { (self.calls.assign)(self.handle, ptr::null()) })
    }

    /// Up to `most` messages, fewer when the time is over.
    pub fn consume(&self, most: usize, timeout_ms: i32) -> Messages<'_> {
        let mut raw: Vec<*mut RawMessage> = Vec::with_capacity(most);
        unsafe {
            let found =
                (self.calls.consume_batch_queue)(self.queue, timeout_ms, raw.as_mut_ptr(), most);
            raw.set_len(found.max(0) as usize);
        }
        Messages { calls: &self.calls, raw }
    }

    /// The first offset of the log, and the next one to be written.
    pub fn ends(&self, topic: &str, partition: i32, timeout_ms: i32) -> Result<(i64, i64), String> {
        let (topic, mut first, mut end) = (text(topic)?, 0, 0);
        let code = unsafe {
            (self.calls.query_watermark_offsets)(
                self.handle,
                topic.as_ptr(),
                partition,
                &mut first,
                &mut end,
                timeout_ms,
            )
        };
        self.judged(code).map(|()| (first, end))
    }

    /// What the library complained about since the last call.
    pub fn complaint(&self) -> Option<String> {
        let mut said = self.complaint.lock().unwrap();
        Some(std::mem::take(&mut *said)).filter(|said| !said.is_empty())
    }

    pub fn meaning(&self, error: c_int) -> String {
        unsafe { CStr::from_ptr((self.calls.err2str)(error)) }.to_string_lossy().into_owned()
    }

    fn judged(&self, error: c_int) -> Result<(), String> {
        if error == 0 { Ok(()) } else { Err(self.meaning(error)) }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.owner != std::process::id() {
            return;
        }
        unsafe {
            (self.calls.queue_destroy)(self.queue);
            (self.calls.destroy_flags)(self.handle, DESTROY_WITHOUT_CLOSE);
        }
    }
}

/// Messages that the library gets back when they are dropped.
pub struct Messages<'a> {
    calls: &'a Functions,
    raw: Vec<*mut RawMessage>,
}

impl Messages<'_> {
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = Message<'_>> {
        self.raw.iter().map(|&raw| Message { calls: self.calls, raw: unsafe { &*raw } })
    }
}

impl Drop for Messages<'_> {
    fn drop(&mut self) {
        for &raw in &self.raw {
            unsafe { (self.calls.message_destroy)(raw) };
        }
    }
}

pub struct Message<'a> {
    calls: &'a Functions,
    raw: &'a RawMessage,
}

impl<'a> Message<'a> {
    /// Not 0: this is no record but a message of the library.
    pub fn error(&self) -> c_int {
        self.raw.error
    }

    pub fn offset(&self) -> i64 {
        self.raw.offset
    }

    pub fn key(&self) -> Option<&'a [u8]> {
        bytes(self.raw.key, self.raw.key_len)
    }

    pub fn value(&self) -> Option<&'a [u8]> {
        bytes(self.raw.payload, self.raw.payload_len)
    }

    /// Its kind (0: none, 1: of the producer, 2: of the log) and the milliseconds.
    pub fn timestamp(&self) -> (i32, i64) {
        let mut kind = 0;
        let milliseconds = unsafe { (self.calls.message_timestamp)(self.raw, &mut kind) };
        (kind, milliseconds)
    }
}

fn bytes<'a>(start: *const u8, length: usize) -> Option<&'a [u8]> {
    (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start, length) })
}

fn text(given: &str) -> Result<CString, String> {
    CString::new(given).map_err(|_| format!("{given:?} has a zero byte"))
}

unsafe fn started(
    calls: &Functions,
    config: &[(String, String)],
    complaint: &Mutex<String>,
) -> Result<*mut c_void, String> {
    let mut reason = [0 as c_char; TEXT_BYTES];
    unsafe {
        let conf = (calls.conf_new)();
        for (name, value) in config {
            let (name, value) = (text(name)?, text(value)?);
            let (name, value) = (name.as_ptr(), value.as_ptr());
            if (calls.conf_set)(conf, name, value, reason.as_mut_ptr(), TEXT_BYTES) != CONF_OK {
                (calls.conf_destroy)(conf);
                return Err(CStr::from_ptr(reason.as_ptr()).to_string_lossy().into_owned());
            }
        }
        (calls.conf_set_opaque)(conf, ptr::from_ref(complaint) as *mut c_void);
        (calls.conf_set_error_cb)(conf, Some(keep_complaint));
        let handle = (calls.new)(CONSUMER, conf, reason.as_mut_ptr(), TEXT_BYTES);
        if handle.is_null() {
            (calls.conf_destroy)(conf);
            return Err(CStr::from_ptr(reason.as_ptr()).to_string_lossy().into_owned());
        }
        Ok(handle)
    }
}

unsafe extern "C" fn keep_complaint(
    _: *mut c_void,
    _: c_int,
    reason: *const c_char,
    opaque: *mut c_void,
) {
    unsafe {
        let said = CStr::from_ptr(reason).to_string_lossy().into_owned();
        *(*(opaque as *const Mutex<String>)).lock().unwrap() = said;
    }
}
